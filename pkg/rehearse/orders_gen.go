//go:build ignore

// Command orders_gen writes orders.txt, the order of plugins in each release of CoreDNS, from the plugin.cfg of the
// releases' Go modules. It fetches what is not in the module cache, so go generate does not run it. For a new release:
//
//	go run orders_gen.go 1.6.0 1.6.1 … 1.15.0
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(releases []string) error {
	if len(releases) == 0 {
		return errors.New("name the releases, the oldest first")
	}
	var out strings.Builder
	out.WriteString("# The order of plugins in the releases of CoreDNS, from their plugin.cfg; written by orders_gen.go.\n")
	out.WriteString("# A release that is not listed has the order of the one before it.\n")
	last := ""
	for _, release := range releases {
		order, err := orderOf(release)
		if err != nil {
			return fmt.Errorf("reading release %s: %w", release, err)
		}
		if order != last {
			fmt.Fprintf(&out, "%s %s\n", release, order)
			last = order
		}
	}
	return os.WriteFile("orders.txt", []byte(out.String()), 0o644)
}

func orderOf(release string) (string, error) {
	listing, err := exec.Command("go", "mod", "download", "-json", "github.com/coredns/coredns@v"+release).Output()
	if err != nil {
		return "", err
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(listing, &module); err != nil {
		return "", err
	}
	config, err := os.ReadFile(filepath.Join(module.Dir, "plugin.cfg"))
	if err != nil {
		return "", err
	}
	var names []string
	for line := range strings.Lines(string(config)) {
		line = strings.TrimSpace(line)
		if name, _, found := strings.Cut(line, ":"); found && !strings.HasPrefix(line, "#") {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "", errors.New("plugin.cfg lists no plugins")
	}
	return strings.Join(names, " "), nil
}
