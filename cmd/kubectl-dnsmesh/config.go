package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"sigs.k8s.io/yaml"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// configFile is the configuration that is read from the working directory when --config names no other.
const configFile = ".dnsmesh.yaml"

// maxConfig bounds the size of a configuration file, and of a resolv.conf, in bytes.
const maxConfig = 1 << 20

// fileConfig is the content of a configuration file. Flags win over it; lists of both are joined.
type fileConfig struct {
	APIVersion string                      `json:"apiVersion"`
	Kind       string                      `json:"kind"`
	FailOn     string                      `json:"failOn,omitempty"`
	Checks     []string                    `json:"checks,omitempty"`
	Skip       []string                    `json:"skip,omitempty"`
	Severities map[string]finding.Severity `json:"severities,omitempty"`
	Suppress   []diagnose.Suppression      `json:"suppress,omitempty"`
}

// readConfig reads a configuration file. An empty path stands for configFile, which need not exist.
func readConfig(path string) (fileConfig, error) {
	var c fileConfig
	required := path != ""
	if !required {
		path = configFile
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) && !required {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("reading the configuration: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxConfig+1))
	if err != nil {
		return c, fmt.Errorf("reading the configuration: %w", err)
	}
	if len(data) > maxConfig {
		return c, fmt.Errorf("reading the configuration: %s has more than %d bytes", path, maxConfig)
	}
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		return c, fmt.Errorf("reading %s: %w", path, err)
	}
	if c.APIVersion != diagnose.APIVersion || c.Kind != "Config" {
		return c, fmt.Errorf("reading %s: apiVersion %q and kind %q are not %s and Config", path, c.APIVersion, c.Kind, diagnose.APIVersion)
	}
	for _, s := range c.Suppress {
		if err := s.Validate(); err != nil {
			return c, fmt.Errorf("reading %s: %w", path, err)
		}
	}
	return c, nil
}
