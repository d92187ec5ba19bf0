// Buildtools builds pinned tools into the folder that package toolcache names, and says what it built.
//
//	go run ./internal/realtool/buildtools [-modules DIR] [-path] [NAME...]
//
// Without names it builds all that are missing. With -path it builds nothing and prints where the one tool named would be.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/dnsmesh/kubectl-dnsmesh/internal/realtool/toolcache"
)

func main() {
	modules := flag.String("modules", "tools", "folder of the modules that pin the tools")
	path := flag.Bool("path", false, "print the path of the tool named, and build nothing")
	flag.Parse()
	if err := run(*modules, *path, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(modules string, pathOnly bool, names []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	tools, err := toolcache.Tools()
	if err != nil {
		return err
	}
	if len(names) > 0 {
		tools = tools[:0]
		for _, name := range names {
			t, err := toolcache.Find(name)
			if err != nil {
				return err
			}
			tools = append(tools, t)
		}
	}
	for _, t := range tools {
		if pathOnly {
			path, err := t.Path()
			if err != nil {
				return err
			}
			fmt.Fprintln(os.Stdout, path)
			continue
		}
		var missing *toolcache.MissingError
		if _, err := toolcache.Lookup(t.Name); errors.As(err, &missing) {
			fmt.Fprintf(os.Stdout, "building %s %s\n", t.Name, t.Version)
		} else if err != nil {
			return err
		} else {
			continue
		}
		start := time.Now()
		path, err := t.Build(ctx, modules, os.Stderr)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stdout, "built %s in %.1f s\n", path, time.Since(start).Seconds())
	}
	return nil
}
