// Package checks holds the analyzers of doctor: one file for each check or small family, with its codes.
package checks

import (
	"slices"
	"strings"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// All returns every analyzer, in the order in which they run.
func All() []*diagnose.Analyzer {
	return []*diagnose.Analyzer{references, outsideNames, namespaces, capturingAliases, aliases, corefiles}
}

// Codes returns every code that any analyzer may report, sorted by ID.
func Codes() []*finding.Code {
	var codes []*finding.Code
	for _, a := range All() {
		for _, c := range a.Codes {
			if !slices.Contains(codes, c) {
				codes = append(codes, c)
			}
		}
	}
	slices.SortFunc(codes, func(a, b *finding.Code) int { return strings.Compare(a.ID, b.ID) })
	return codes
}

// Find returns the code with that ID, in any letter case, or nil.
func Find(id string) *finding.Code {
	for _, c := range Codes() {
		if strings.EqualFold(c.ID, id) {
			return c
		}
	}
	return nil
}
