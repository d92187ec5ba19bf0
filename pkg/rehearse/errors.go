package rehearse

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/corefile"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// ErrStopped is what a judge that was stopped answers.
var ErrStopped = errors.New("the rehearsal has ended")

// Refusal is an error of Start: CoreDNS does not load the Corefile.
//
// It is an error of the user's server only where Certain is true: the rules come from that release, or they hold in
// every one. Otherwise it is CoreDNS 1.15.0 that refuses, and an older release may accept what 1.15.0 has dropped.
type Refusal struct {
	// Position is the place in the user's file.
	Position corefile.Position
	// Via is the import that brought the place in, or nil.
	Via *corefile.Import
	// Plugin is the directive that was refused, and Property the line of its block; empty where the message is about
	// a server block, or about the directive as a whole.
	Plugin, Property string
	// Msg is the server's own message, without the position.
	Msg string
	// Certain tells that the release that the user runs refuses it too.
	Certain bool
	// Since is the first release that knows the directive and Dropped the first that no longer does, if there is one,
	// where the message is that this release does not know it. Since is also the first that knows Property, where the
	// message is about that.
	Since, Dropped resolve.Version
}

// Error returns file:line:col: text.
func (r *Refusal) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", r.Position, r.Msg)
	for via := r.Via; via != nil; via = via.Parent {
		fmt.Fprintf(&b, " (imported at %s)", via.At.Position())
	}
	return b.String()
}

// Unsupported is an error of Start: the judge does not run the Corefile, which says nothing about whether the user's
// server would.
type Unsupported struct {
	Position corefile.Position
	// Reason is a clause.
	Reason string
}

// Error returns file:line:col: text.
func (u *Unsupported) Error() string {
	if u.Position == (corefile.Position{}) {
		return u.Reason
	}
	return fmt.Sprintf("%s: %s", u.Position, u.Reason)
}

func unsupported(at corefile.Token, format string, args ...any) error {
	return &Unsupported{Position: at.Position(), Reason: fmt.Sprintf(format, args...)}
}

// Notice is something in the Corefile that the judge does not run as it is, so that its answers may differ there.
type Notice struct {
	Kind     NoticeKind
	Position corefile.Position
	// Plugin is the directive.
	Plugin string
	// Text is a clause.
	Text string
}

// NoticeKind tells notices apart.
type NoticeKind string

// The kinds of notices.
const (
	// External is a plugin that no release of CoreDNS has: the image is a build of its own, or the word is a typo.
	External NoticeKind = "external"
	// Skipped is a plugin that the judge does not run, because it cannot change an answer here.
	Skipped NoticeKind = "skipped"
	// Unjudged is a plugin whose answers depend on what is not in the snapshot: they are marked as unknown.
	Unjudged NoticeKind = "unjudged"
)

// parseError is how the dispenser of caddyfile reports a place (dispenser.go, Err; parse.go prints the same way).
var parseError = regexp.MustCompile(`(?s)^(?:plugin/[^:\s]+: )*` + printedName + `:(\d+) - (?:Error during parsing|Parse error|Syntax error|Error): ?(.*)$`)

var pluginPrefix = regexp.MustCompile(`^(?:plugin/[^:\s]+: )+`)

// splitError takes the line out of a message of CoreDNS, 0 if it names none, and the plugin's prefix off.
func splitError(err error) (line int, msg string) {
	msg = err.Error()
	if m := parseError.FindStringSubmatch(msg); m != nil {
		line, _ = strconv.Atoi(m[1]) // the pattern has digits only; a line that does not fit is not found
		return line, strings.TrimSpace(m[2])
	}
	return 0, strings.TrimSpace(pluginPrefix.ReplaceAllString(msg, ""))
}

// asCorefileError finds the place in an error of package corefile.
func asCorefileError(err error) (*corefile.Error, bool) {
	var e *corefile.Error
	ok := errors.As(err, &e)
	return e, ok
}
