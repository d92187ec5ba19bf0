package encode

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// The types are the part of SARIF 2.1.0 (OASIS Standard plus Errata 01) that is written here; section numbers are its.

type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool        sarifTool         `json:"tool"`
	Invocations []sarifInvocation `json:"invocations"`
	Results     []sarifResult     `json:"results"`
	ColumnKind  string            `json:"columnKind"`
	Properties  map[string]any    `json:"properties"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name           string            `json:"name"`
	Version        string            `json:"version,omitempty"`
	InformationURI string            `json:"informationUri"`
	Rules          []sarifDescriptor `json:"rules"`
	Notifications  []sarifDescriptor `json:"notifications"`
}

type sarifDescriptor struct {
	ID                   string        `json:"id"`
	Name                 string        `json:"name,omitempty"`
	ShortDescription     sarifText     `json:"shortDescription"`
	FullDescription      *sarifText    `json:"fullDescription,omitempty"`
	Help                 *sarifText    `json:"help,omitempty"`
	DefaultConfiguration sarifSeverity `json:"defaultConfiguration"`
}

type sarifSeverity struct {
	Level string `json:"level"`
}

type sarifText struct {
	Text     string `json:"text"`
	Markdown string `json:"markdown,omitempty"`
}

type sarifInvocation struct {
	ExecutionSuccessful bool                `json:"executionSuccessful"`
	Notifications       []sarifNotification `json:"toolExecutionNotifications"`
}

type sarifNotification struct {
	Descriptor sarifReference `json:"descriptor"`
	Level      string         `json:"level"`
	Message    sarifText      `json:"message"`
	Properties map[string]any `json:"properties"`
}

type sarifReference struct {
	ID    string `json:"id"`
	Index int    `json:"index"`
}

type sarifResult struct {
	RuleID string `json:"ruleId"`
	// RuleIndex is missing for a rule that the driver does not describe.
	RuleIndex           *int              `json:"ruleIndex,omitempty"`
	Level               string            `json:"level"`
	Message             sarifText         `json:"message"`
	Locations           []sarifLocation   `json:"locations"`
	RelatedLocations    []sarifLocation   `json:"relatedLocations,omitempty"`
	PartialFingerprints map[string]string `json:"partialFingerprints"`
	Properties          map[string]any    `json:"properties"`
}

type sarifLocation struct {
	Physical *sarifPhysical `json:"physicalLocation,omitempty"`
	Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	Message  *sarifText     `json:"message,omitempty"`
}

type sarifPhysical struct {
	Artifact sarifArtifact `json:"artifactLocation"`
	Region   *sarifRegion  `json:"region,omitempty"`
}

type sarifArtifact struct {
	URI string `json:"uri"`
}

type sarifRegion struct {
	StartLine   int `json:"startLine"`
	StartColumn int `json:"startColumn,omitempty"`
}

type sarifLogical struct {
	Name               string `json:"name"`
	FullyQualifiedName string `json:"fullyQualifiedName"`
	Kind               string `json:"kind"`
}

// The kinds of notification, by their index in the driver.
const (
	notifySkipped = iota
	notifyPartly
)

// SARIF writes r as a SARIF 2.1.0 log with one run. Codes become the rules, in their order; toolVersion is the version
// of the program, or empty.
//
// A finding of a cluster has only a logical location. One at a place in a file has a physical location too, with the
// path as the user gave it: relative paths stay relative, as code scanning needs them.
func SARIF(w io.Writer, r *diagnose.Report, codes []*finding.Code, toolVersion string) error {
	n := normal(r)
	run := sarifRun{
		Tool: sarifTool{Driver: sarifDriver{
			Name:           "kubectl-dnsmesh",
			Version:        toolVersion,
			InformationURI: "https://github.com/dnsmesh/kubectl-dnsmesh",
			Rules:          []sarifDescriptor{},
			Notifications: []sarifDescriptor{
				notifySkipped: {
					ID: "skipped", Name: "CheckSkipped",
					ShortDescription:     sarifText{Text: "a check did not run because an input is absent"},
					DefaultConfiguration: sarifSeverity{"warning"},
				},
				notifyPartly: {
					ID: "partly", Name: "CheckPartlyBlind",
					ShortDescription:     sarifText{Text: "a check ran without an input and may have missed something"},
					DefaultConfiguration: sarifSeverity{"note"},
				},
			},
		}},
		Invocations: []sarifInvocation{{ExecutionSuccessful: r.Judged(), Notifications: []sarifNotification{}}},
		Results:     []sarifResult{},
		// Columns of a finding count bytes, which SARIF cannot say. On lines of ASCII, which Corefiles and resolv.conf
		// are, the kinds agree.
		ColumnKind: "unicodeCodePoints",
		Properties: map[string]any{"clusters": n.Clusters, "summary": n.Summary},
	}
	index := map[string]int{}
	for _, c := range codes {
		if _, known := index[c.ID]; !known {
			index[c.ID] = len(run.Tool.Driver.Rules)
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule(c))
		}
	}
	seen := map[string]int{}
	for _, f := range n.Findings {
		result := sarifFinding(f)
		if i, known := index[f.Code]; known {
			result.RuleIndex = &i
		}
		// Equal findings at several places differ by their number, as in the fingerprints that GitHub computes.
		hash := fingerprint(f)
		seen[hash]++
		result.PartialFingerprints = map[string]string{"dnsmeshFinding/v1": fmt.Sprintf("%s:%d", hash, seen[hash])}
		run.Results = append(run.Results, result)
	}
	for _, s := range n.Skipped {
		run.Invocations[0].Notifications = append(run.Invocations[0].Notifications, sarifSkipped(s, run.Tool.Driver.Notifications))
	}
	return writeJSON(w, sarifLog{
		Schema:  "https://json.schemastore.org/sarif-2.1.0.json",
		Version: "2.1.0",
		Runs:    []sarifRun{run},
	})
}

func sarifRule(c *finding.Code) sarifDescriptor {
	var help markdown
	help.doc(c.Doc)
	first, _, _ := strings.Cut(c.Doc, "\n\n")
	return sarifDescriptor{
		ID:                   c.ID,
		Name:                 pascalCase(c.Title),
		ShortDescription:     sarifText{Text: c.Title},
		FullDescription:      &sarifText{Text: strings.Join(strings.Fields(first), " ")},
		Help:                 &sarifText{Text: c.Doc, Markdown: help.String()},
		DefaultConfiguration: sarifSeverity{sarifLevel(c.Severity)},
	}
}

// pascalCase makes an identifier of a title, as the name of a rule has to be one (section 3.49.7).
func pascalCase(title string) string {
	words := strings.FieldsFunc(title, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for i, w := range words {
		first := []rune(w)
		first[0] = unicode.ToUpper(first[0])
		words[i] = string(first)
	}
	return strings.Join(words, "")
}

// sarifLevel returns the level of a severity (section 3.27.10).
func sarifLevel(s finding.Severity) string {
	switch s {
	case finding.Error:
		return "error"
	case finding.Warning:
		return "warning"
	case finding.Info:
		return "note"
	}
	return "none"
}

func sarifFinding(f finding.Finding) sarifResult {
	text := f.Message
	if f.Fix != nil && f.Fix.Summary != "" {
		text += ". To fix it, " + f.Fix.Summary
	}
	r := sarifResult{
		RuleID:     f.Code,
		Level:      sarifLevel(f.Severity),
		Message:    sarifMessage(text + "."),
		Locations:  []sarifLocation{{Physical: sarifPlace(f.Position), Logical: []sarifLogical{sarifObject(f.Cluster, f.Object)}}},
		Properties: map[string]any{"object": f.Object, "evidence": f.Evidence},
	}
	for _, e := range f.Evidence {
		if at := sarifPlace(e.Position); at != nil {
			message := sarifMessage(strings.TrimPrefix(e.Label+": "+e.Text, ": "))
			r.RelatedLocations = append(r.RelatedLocations, sarifLocation{Physical: at, Message: &message})
		}
	}
	for _, o := range f.Related {
		r.RelatedLocations = append(r.RelatedLocations, sarifLocation{Logical: []sarifLogical{sarifObject(f.Cluster, o)}})
	}
	if f.Cluster != "" {
		r.Properties["cluster"] = f.Cluster
	}
	if f.Position != nil {
		r.Properties["position"] = f.Position
	}
	if len(f.Related) > 0 {
		r.Properties["related"] = f.Related
	}
	if f.Fix != nil {
		r.Properties["fix"] = f.Fix
	}
	return r
}

// sarifMessage returns text as a plain text message. Braces are doubled, since single ones hold placeholders (section
// 3.11.5), and what would read as an embedded link is taken apart (section 3.11.6).
func sarifMessage(text string) sarifText {
	text = finding.Printable(text)
	return sarifText{Text: strings.NewReplacer("{", "{{", "}", "}}", "](", "] (").Replace(text)}
}

func sarifObject(cluster string, o finding.Object) sarifLogical {
	parts := slices.DeleteFunc([]string{cluster, o.Kind, o.Namespace, o.Name}, func(s string) bool { return s == "" })
	return sarifLogical{
		Name:               finding.Printable(o.Name),
		FullyQualifiedName: finding.Printable(strings.Join(parts, "/")),
		Kind:               "resource",
	}
}

// sarifPlace returns the place in a file, or nil where p names none.
func sarifPlace(p *finding.Position) *sarifPhysical {
	if p == nil || !isFile(p.Source) {
		return nil
	}
	at := &sarifPhysical{Artifact: sarifArtifact{URI: fileURI(p.Source)}}
	if p.Line > 0 {
		at.Region = &sarifRegion{StartLine: p.Line, StartColumn: max(p.Col, 0)}
	}
	return at
}

// isFile tells whether the source of a finding.Position is a path and not "ConfigMap namespace/name key", standard input
// or nothing.
func isFile(source string) bool {
	if source == "" || source == "-" {
		return false
	}
	object, ok := strings.CutPrefix(source, "ConfigMap ")
	name, _, key := strings.Cut(object, " ")
	return !ok || !key || !strings.Contains(name, "/")
}

// fileURI returns a path as a URI reference: a relative one without scheme, an absolute one with that of files
// (RFC 8089). Windows paths are known by their backslashes and drive letters.
func fileURI(p string) string {
	p = path.Clean(strings.ReplaceAll(p, `\`, "/"))
	u := url.URL{Path: p}
	if len(p) > 2 && p[1] == ':' && p[2] == '/' {
		u.Path = "/" + p
	}
	if strings.HasPrefix(u.Path, "/") {
		u.Scheme = "file"
	}
	return u.String()
}

// fingerprint is the same for the same finding in every run: it leaves out the place, which moves with every edit.
func fingerprint(f finding.Finding) string {
	h := sha256.New()
	for _, part := range []string{f.Code, f.Cluster, f.Object.Kind, f.Object.Namespace, f.Object.Name, f.Message} {
		fmt.Fprintf(h, "%d:%s,", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func sarifSkipped(s diagnose.Skipped, kinds []sarifDescriptor) sarifNotification {
	kind := notifySkipped
	if s.Partly {
		kind = notifyPartly
	}
	n := sarifNotification{
		Descriptor: sarifReference{kinds[kind].ID, kind},
		Level:      kinds[kind].DefaultConfiguration.Level,
		Message:    sarifMessage(skippedText(s) + "."),
		Properties: map[string]any{"check": s.Check, "codes": s.Codes, "reason": s.Reason},
	}
	if s.Cluster != "" {
		n.Properties["cluster"] = s.Cluster
	}
	return n
}
