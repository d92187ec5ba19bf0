package clustergen

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// WriteJSON writes the cluster as kubectl get -o json prints a list, without the indentation.
func (c *Cluster) WriteJSON(w io.Writer) error {
	b := bufio.NewWriterSize(w, 64<<10)
	// A bufio.Writer keeps its first error, so that it need not be looked at before the end.
	fmt.Fprint(b, `{"apiVersion":"v1","kind":"List","metadata":{"resourceVersion":""},"items":[`)
	comma := ""
	item := func(object any) error {
		raw, err := json.Marshal(object)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "%s\n%s", comma, raw)
		comma = ","
		return nil
	}
	err := c.each(item)
	if err == nil {
		fmt.Fprintln(b, "\n]}")
		err = b.Flush()
	}
	if err != nil {
		return fmt.Errorf("writing the generated cluster: %w", err)
	}
	return nil
}

// each calls f with every object, namespaces first, until it returns an error.
func (c *Cluster) each(f func(object any) error) error {
	for o := range c.Namespaces() {
		if err := f(o); err != nil {
			return err
		}
	}
	for o := range c.Nodes() {
		if err := f(o); err != nil {
			return err
		}
	}
	for o := range c.Services() {
		if err := f(o); err != nil {
			return err
		}
	}
	for o := range c.EndpointSlices() {
		if err := f(o); err != nil {
			return err
		}
	}
	for o := range c.ConfigMaps() {
		if err := f(o); err != nil {
			return err
		}
	}
	for o := range c.Pods() {
		if err := f(o); err != nil {
			return err
		}
	}
	return nil
}
