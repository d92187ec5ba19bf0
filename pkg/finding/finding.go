// Package finding holds what every command says about a cluster: codes, severities, positions, evidence and fixes,
// and the one total order in which findings are printed.
//
// The texts of a finding may quote names and values that come from a cluster or a file. They are held here as they
// were read; whoever prints them escapes control characters (see Printable).
package finding

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Severity tells how much a finding hurts. The zero value is no severity.
type Severity int

// The severities, from the mildest to the worst.
const (
	Info Severity = iota + 1
	Warning
	Error
)

// String returns the lower-case word used in JSON, flags and configuration files.
func (s Severity) String() string {
	switch s {
	case Info:
		return "info"
	case Warning:
		return "warning"
	case Error:
		return "error"
	}
	return "none"
}

// ParseSeverity reads the word that String writes, in any case, and the one-letter forms E, W and I.
func ParseSeverity(s string) (Severity, error) {
	switch strings.ToLower(s) {
	case "info", "i", "information":
		return Info, nil
	case "warning", "w", "warn":
		return Warning, nil
	case "error", "e":
		return Error, nil
	}
	return 0, fmt.Errorf("severity %s is none of error, warning, info", strconv.Quote(s))
}

// MarshalText writes the word of String.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what ParseSeverity reads.
func (s *Severity) UnmarshalText(b []byte) (err error) {
	*s, err = ParseSeverity(string(b))
	return err
}

// Code is a kind of finding. Its ID is never reused: a code that goes is retired.
type Code struct {
	// ID is DM and four digits.
	ID string
	// Severity is the worst severity with which a check reports the code; a check may report a milder one where the
	// effect in the cluster at hand is milder.
	Severity Severity
	// Title is one line without a final dot.
	Title string
	// Doc says what is found, why it matters, and how to mend it, with an example. Plain text in paragraphs; an
	// indented line is shown as it is.
	Doc string
}

// Object names an object of a cluster, or a file.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns "Kind namespace/name", or "Kind name" without a namespace.
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Position is a place in a text: a file, or a key of a ConfigMap. Line and Col count from 1; 0 is unknown. Col counts
// bytes.
type Position struct {
	// Source names the text as a user would look for it: a path, or "ConfigMap namespace/name key".
	Source string `json:"source"`
	Line   int    `json:"line,omitempty"`
	Col    int    `json:"column,omitempty"`
}

// String returns source:line:col as far as they are known.
func (p Position) String() string {
	s := p.Source
	if p.Line > 0 {
		s += ":" + strconv.Itoa(p.Line)
		if p.Col > 0 {
			s += ":" + strconv.Itoa(p.Col)
		}
	}
	return s
}

// Evidence is one quotable fact behind a finding.
type Evidence struct {
	// Label is the word in front of the fact: "used in", "walk", "aliases", "meant?".
	Label string `json:"label"`
	Text  string `json:"text"`
	// Position is where the fact stands, if it stands in a text.
	Position *Position `json:"position,omitempty"`
}

// Fix says how to mend a finding.
type Fix struct {
	// Summary is a verb phrase without a final dot.
	Summary string `json:"summary"`
	// Manifest is YAML ready for `kubectl apply -f -`, or empty.
	Manifest string `json:"manifest,omitempty"`
	// Diff is a unified diff of one text, or empty.
	Diff string `json:"diff,omitempty"`
	// Commands are command lines that a user may run, the next one to type first.
	Commands []string `json:"commands,omitempty"`
}

// Finding is one fault, or one thing worth knowing, with what shows it and what mends it.
type Finding struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	// Message is a clause: the subject quoted, the fact, what it does to a query. No final dot.
	Message string `json:"message"`
	// Cluster is the context or file that was judged; empty where only one was.
	Cluster  string     `json:"cluster,omitempty"`
	Object   Object     `json:"object"`
	Position *Position  `json:"position,omitempty"`
	Evidence []Evidence `json:"evidence"`
	Related  []Object   `json:"related,omitempty"`
	Fix      *Fix       `json:"fix,omitempty"`
}

// Compare is the one total order of findings: the worst first, then by code, cluster, object, place and text. Two
// findings that compare equal print the same.
func Compare(a, b Finding) int {
	return cmp.Or(
		cmp.Compare(b.Severity, a.Severity),
		cmp.Compare(a.Code, b.Code),
		cmp.Compare(a.Cluster, b.Cluster),
		compareObject(a.Object, b.Object),
		comparePosition(a.Position, b.Position),
		cmp.Compare(a.Message, b.Message),
		slices.CompareFunc(a.Evidence, b.Evidence, compareEvidence),
		slices.CompareFunc(a.Related, b.Related, compareObject),
		compareFix(a.Fix, b.Fix),
	)
}

func compareObject(a, b Object) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

func comparePosition(a, b *Position) int {
	return compareNil(a, b, func(a, b *Position) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
}

func compareEvidence(a, b Evidence) int {
	return cmp.Or(cmp.Compare(a.Label, b.Label), cmp.Compare(a.Text, b.Text), comparePosition(a.Position, b.Position))
}

func compareFix(a, b *Fix) int {
	return compareNil(a, b, func(a, b *Fix) int {
		return cmp.Or(cmp.Compare(a.Summary, b.Summary), cmp.Compare(a.Manifest, b.Manifest),
			cmp.Compare(a.Diff, b.Diff), slices.Compare(a.Commands, b.Commands))
	})
}

// compareNil puts a missing value before every other.
func compareNil[T any](a, b *T, compare func(a, b *T) int) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return compare(a, b)
}

// Printable returns s with everything that could steer a terminal or hide text written as an escape sequence of Go:
// control characters, invalid UTF-8, and format characters such as those that reverse the direction of text. Line
// feeds and tabs are escaped too; callers that print several lines split them first.
func Printable(s string) string {
	clean := true
	for _, r := range s {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if unicode.IsPrint(r) && (r != utf8.RuneError || n > 1) {
			b.WriteRune(r)
		} else {
			q := strconv.QuoteToASCII(s[i : i+n])
			b.WriteString(q[1 : len(q)-1])
		}
		i += n
	}
	return b.String()
}
