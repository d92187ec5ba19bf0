// Command kubectl-dnsmesh is the kubectl plugin "kubectl dnsmesh".
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // exec, OIDC and the cloud providers' ways to log in
	"k8s.io/klog/v2"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// version is set by the linker: see the Makefile.
var version = "v0.0.0-dev"

// The exit codes are those of kubectl diff: 0, something found, could not run.
const (
	exitOK       = 0
	exitFindings = 1
	exitError    = 2
)

// gcPercent is the garbage collector's target where GOGC does not set one. Most of the memory is the snapshot, which stays;
// the default of 100 would double it with garbage of the lists. On the cluster of BenchmarkDoctorLive this takes 45 MiB off
// the peak for a fifth more processor time, and hardly any of the wall time, which the API server decides.
const gcPercent = 22

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	os.Exit(run(os.Args[1:], genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}))
}

// run runs one command and returns its exit code.
func run(args []string, streams genericiooptions.IOStreams) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The second signal ends the process whatever it waits for: reading a pipe or a terminal cannot be called off.
	context.AfterFunc(ctx, stop)

	// client-go logs what it also returns as an error, such as a read that ended because another one failed.
	klog.SetLoggerWithOptions(logr.Discard(), klog.ContextualLogger(true))

	root := newRoot(streams)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if errors.Is(err, errFindings) {
		return exitFindings
	}
	printError(streams.ErrOut, err)
	return exitError
}

// errFindings ends a command that ran to its end and found something at or above --fail-on.
var errFindings = errors.New("findings")

// hintError is an error of which it is known what to do about it.
type hintError struct {
	error
	hint string
}

func (e *hintError) Unwrap() error { return e.error }

// withHint adds what to do about an error.
func withHint(err error, format string, args ...any) error {
	return &hintError{err, fmt.Sprintf(format, args...)}
}

// printError writes an error and, where it has one, its hint. Errors that were joined are written one by one.
func printError(w interface{ Write([]byte) (int, error) }, err error) {
	var hint *hintError
	if errors.As(err, &hint) {
		defer fmt.Fprintf(w, "hint: %s\n", finding.Printable(hint.hint))
	}
	for _, e := range flatten(err) {
		// cobra puts what may have been meant behind an empty line.
		text, meant, _ := strings.Cut(strings.TrimSpace(e.Error()), "\n\n")
		fmt.Fprintf(w, "error: %s\n", finding.Printable(text))
		if meant != "" {
			fmt.Fprintf(w, "hint: %s\n", finding.Printable(strings.Join(strings.Fields(meant), " ")))
		}
	}
}

// flatten takes an error of errors.Join apart, through a hint around it.
func flatten(err error) []error {
	if hint, ok := err.(*hintError); ok { //nolint:errorlint // only a hint around the whole error is taken off
		err = hint.error
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, flatten(e)...)
	}
	return all
}
