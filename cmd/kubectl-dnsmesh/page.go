package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// The widths of a page in columns. Where nothing says how wide the reader's screen is, it is taken to be narrow.
const (
	narrowest = 40
	usual     = 80
	widest    = 200
)

// page writes text for people: wrapped at blanks, control characters escaped, colour only where it is wanted.
type page struct {
	w      io.Writer
	width  int
	colour bool
	err    error
}

// newPage returns a page for w. Its width is that of the terminal, or COLUMNS, or usual.
func newPage(w io.Writer) *page {
	p := &page{w: w, width: usual}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		p.width = n
	}
	if fd, ok := terminal(w); ok {
		if n, _, err := term.GetSize(fd); err == nil && n > 0 {
			p.width = n
		}
		// https://no-color.org: any value that is not empty.
		p.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	p.width = min(max(p.width, narrowest), widest)
	return p
}

// terminal returns the file descriptor of w if it is a terminal.
func terminal(w io.Writer) (int, bool) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	return int(f.Fd()), true
}

func (p *page) write(s string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, s)
	}
}

// style is an SGR sequence of a terminal.
type style string

const (
	plain  style = ""
	bold   style = "\x1b[1m"
	red    style = "\x1b[1;31m"
	yellow style = "\x1b[1;33m"
	cyan   style = "\x1b[1;36m"
	dim    style = "\x1b[2m"
	reset        = "\x1b[0m"
)

func (p *page) styled(s style, text string) string {
	if !p.colour || s == plain {
		return text
	}
	return string(s) + text + reset
}

// hang writes text wrapped at blanks: the first line behind head, the others below its end. The width of head counts
// as it is shown; it must hold no control characters. A word that is longer than a line stands whole on its own.
func (p *page) hang(head string, s style, text string) {
	indent := utf8.RuneCountInString(head)
	room := max(p.width-indent, 20)
	for i, line := range wrap(finding.Printable(text), room) {
		if i == 0 {
			p.write(head)
		} else {
			p.write(strings.Repeat(" ", indent))
		}
		p.write(p.styled(s, line) + "\n")
	}
}

// command writes a command line behind an indent. Where it takes several lines, each but the last ends as a shell wants
// it, so that it can be copied whole.
func (p *page) command(indent, text string) {
	lines := wrap(finding.Printable(text), max(p.width-len(indent)-2, 20))
	for i, line := range lines {
		if i < len(lines)-1 {
			line += ` \`
		}
		p.write(indent + p.styled(dim, line) + "\n")
	}
}

// block writes the lines of a text as they are behind an indent, at most limit of them.
func (p *page) block(indent, text string, limit int) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, l := range lines {
		if i == limit && len(lines) > limit+1 {
			p.write(fmt.Sprintf("%s… %d more lines (-o wide)\n", indent, len(lines)-limit))
			return
		}
		p.write(indent + finding.Printable(strings.TrimRight(l, "\r")) + "\n")
	}
}

// paragraphs writes a text of paragraphs divided by empty lines, each wrapped anew; indented lines stay as they are.
func (p *page) paragraphs(text string) {
	var words []string
	flush := func() {
		for _, l := range wrap(strings.Join(words, " "), p.width) {
			p.write(l + "\n")
		}
		words = nil
	}
	for l := range strings.SplitSeq(text, "\n") {
		switch {
		case l == "":
			if len(words) > 0 {
				flush()
			}
			p.write("\n")
		case strings.HasPrefix(l, "    "), strings.HasPrefix(l, "\t"):
			if len(words) > 0 {
				flush()
			}
			p.write(l + "\n")
		default:
			words = append(words, l)
		}
	}
	if len(words) > 0 {
		flush()
	}
}

// wrap breaks a text at blanks into lines of at most width columns, where its words allow it.
func wrap(text string, width int) []string {
	var lines []string
	var line strings.Builder
	length := 0
	for word := range strings.SplitSeq(text, " ") {
		n := utf8.RuneCountInString(word)
		if length > 0 && length+1+n > width {
			lines = append(lines, line.String())
			line.Reset()
			length = 0
		}
		if line.Len() > 0 {
			line.WriteByte(' ')
			length++
		}
		line.WriteString(word)
		length += n
	}
	return append(lines, line.String())
}
