package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/dnsmesh/kubectl-dnsmesh/internal/golden"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose/checks"
)

// TestDocs keeps docs/cli and docs/checks.md what the code says.
func TestDocs(t *testing.T) {
	docs := filepath.Join("..", "..", "docs")
	root := newRoot(genericiooptions.NewTestIOStreamsDiscard())
	root.InitDefaultCompletionCmd()
	var all func(*cobra.Command)
	all = func(cmd *cobra.Command) {
		if !cmd.IsAvailableCommand() && cmd != root || cmd.Name() == "help" {
			return
		}
		var b bytes.Buffer
		cmd.DisableAutoGenTag = true
		if err := doc.GenMarkdown(cmd, &b); err != nil {
			t.Fatal(err)
		}
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "_") + ".md"
		golden.Compare(t, filepath.Join(docs, "cli", name), b.Bytes())
		if cmd.Name() == "completion" {
			return
		}
		for _, c := range cmd.Commands() {
			all(c)
		}
	}
	all(root)

	var b bytes.Buffer
	b.WriteString("# Checks\n\nWhat `kubectl dnsmesh doctor` finds. `kubectl dnsmesh explain CODE` prints the same in a terminal. A code is never reused.\n\n")
	b.WriteString("The severity is the worst one; a finding is milder where its effect in the cluster is milder.\n\n")
	b.WriteString("| code | severity | found when |\n| --- | --- | --- |\n")
	for _, c := range checks.Codes() {
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s |\n", c.ID, strings.ToLower(c.ID), c.Severity, strings.ReplaceAll(c.Title, "|", `\|`))
	}
	for _, c := range checks.Codes() {
		fmt.Fprintf(&b, "\n## %s\n\n**%s** (%s)\n\n%s\n", c.ID, c.Title, c.Severity, c.Doc)
	}
	golden.Compare(t, filepath.Join(docs, "checks.md"), b.Bytes())
}
