package rehearse

import (
	"errors"
	"fmt"
	"strings"
	"text/template/parse"

	"github.com/expr-lang/expr/ast"
	exprparser "github.com/expr-lang/expr/parser"
)

// Bounds on what plugins compute. Nothing stops a goroutine, and a template or an expression can ask for more memory
// than there is in one line. So what could is told by its form, before it runs, and not run at all.
const (
	// maxCode bounds the text of one template or expression.
	maxCode = 16 << 10
	// maxGrowth bounds how many times a text may multiply on its way through functions.
	maxGrowth = 1 << 12
)

// checkTemplate says why a text/template is not run; nil if it is. Without loops and calls of other templates it ends;
// its output is bounded by its own text and by how much its functions multiply their arguments.
func checkTemplate(text string) error {
	if len(text) > maxCode {
		return fmt.Errorf("the template has more than %d bytes", maxCode)
	}
	// Functions are those of text/template (funcs.go); the plugin adds a few of its own, which parse numbers.
	tree := parse.New("")
	tree.Mode = parse.SkipFuncCheck
	set := map[string]*parse.Tree{}
	if _, err := tree.Parse(text, "", "", set); err != nil {
		return nil //nolint:nilerr // the plugin says what is wrong with it
	}
	if len(set) > 1 {
		return errors.New("the template defines others")
	}
	g := growth{factor: 1}
	g.node(tree.Root)
	return g.err
}

// growth walks a template.
type growth struct {
	factor int
	err    error
}

func (g *growth) fail(why string) {
	if g.err == nil {
		g.err = errors.New(why)
	}
}

func (g *growth) multiply(by int) {
	if g.factor *= max(by, 1); g.factor > maxGrowth {
		g.factor = maxGrowth + 1
		g.fail("the template multiplies its own output")
	}
}

func (g *growth) node(n parse.Node) {
	switch n := n.(type) {
	case *parse.ListNode:
		if n != nil {
			for _, sub := range n.Nodes {
				g.node(sub)
			}
		}
	case *parse.ActionNode:
		g.pipe(n.Pipe)
	case *parse.IfNode:
		g.branch(&n.BranchNode)
	case *parse.WithNode:
		g.branch(&n.BranchNode)
	case *parse.RangeNode:
		g.fail("the template has a loop")
	case *parse.TemplateNode:
		g.fail("the template calls another one")
	}
}

func (g *growth) branch(b *parse.BranchNode) {
	g.pipe(b.Pipe)
	g.node(b.List)
	g.node(b.ElseList)
}

func (g *growth) pipe(p *parse.PipeNode) {
	if p == nil {
		return
	}
	for _, c := range p.Cmds {
		g.command(c)
	}
}

func (g *growth) command(c *parse.CommandNode) {
	for _, a := range c.Args {
		switch a := a.(type) {
		case *parse.PipeNode:
			g.pipe(a)
		case *parse.ChainNode:
			if p, ok := a.Node.(*parse.PipeNode); ok {
				g.pipe(p)
			}
		}
	}
	id, ok := c.Args[0].(*parse.IdentifierNode)
	if !ok {
		return
	}
	switch id.Ident {
	case "print", "println":
		g.multiply(len(c.Args) + 1)
	case "html", "js", "urlquery":
		const escaped = 6 // \u0000
		g.multiply((len(c.Args) + 1) * escaped)
	case "printf":
		if len(c.Args) < 2 {
			return
		}
		format, ok := c.Args[1].(*parse.StringNode)
		if !ok {
			g.fail("the template makes up a format")
			return
		}
		// A width of up to two digits adds no more than other text does.
		if strings.Contains(format.Text, "*") || hasNumber(format.Text, 3) {
			g.fail("the template pads its output")
		}
		g.multiply(max(strings.Count(format.Text, "%"), len(c.Args)) + 1)
	case "call":
		g.fail("the template calls a value")
	}
}

// hasNumber tells whether s has a run of so many digits.
func hasNumber(s string, digits int) bool {
	run := 0
	for _, c := range []byte(s) {
		if run++; c < '0' || c > '9' {
			run = 0
		}
		if run == digits {
			return true
		}
	}
	return false
}

// checkExpressions says why expressions (github.com/expr-lang/expr) of one directive are not run; nil if they are.
// Later ones may use the values of earlier ones, so their growth multiplies.
func checkExpressions(texts []string) error {
	c := exprChecker{factor: 1}
	for _, text := range texts {
		if len(text) > maxCode {
			return fmt.Errorf("the expression has more than %d bytes", maxCode)
		}
		tree, err := exprparser.Parse(text)
		if err != nil {
			return nil //nolint:nilerr // the plugin says what is wrong with it
		}
		c.pluses = 0
		ast.Walk(&tree.Node, &c)
		if c.factor *= c.pluses + 1; c.factor > maxGrowth && c.err == nil {
			c.err = errors.New("the expression multiplies its own value")
		}
		if c.err != nil {
			return c.err
		}
	}
	return nil
}

type exprChecker struct {
	factor, pluses int
	err            error
}

// Visit implements ast.Visitor.
func (c *exprChecker) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.PredicateNode:
		c.err = errors.New("the expression has a loop")
	case *ast.VariableDeclaratorNode:
		c.err = errors.New("the expression declares a variable")
	case *ast.BuiltinNode:
		switch n.Name {
		case "len", "lower", "upper", "trim", "trimPrefix", "trimSuffix", "hasPrefix", "hasSuffix", "indexOf",
			"lastIndexOf", "int", "float", "string", "abs", "min", "max", "split":
		default:
			c.err = fmt.Errorf("the expression uses the function %s", n.Name)
		}
	case *ast.BinaryNode:
		switch n.Operator {
		case "+":
			c.pluses++
		case "..":
			c.err = errors.New("the expression has a range")
		}
	}
}

// checkRewrites says why the rules of the rewrite plugin in one block are not run. A rule that goes on may hand a name
// that it has made longer to the next.
func checkRewrites(rules []*line) error {
	factor := 1
	for _, r := range rules {
		if len(r.words) < 2 || r.words[1].text != "continue" {
			continue
		}
		most := 1
		for _, w := range r.words {
			most = max(most, strings.Count(w.text, "{"))
		}
		if factor *= most; factor > maxGrowth {
			return errors.New("the rewrite rules multiply a name")
		}
	}
	return nil
}
