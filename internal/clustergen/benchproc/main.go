// Command benchproc is what benchmarks run beside the program that they measure.
//
//	benchproc list KUBECONFIG     lists what a bare client would, and prints how many objects there were
//	benchproc run PROGRAM ARG...  runs a program without its output, and prints what it cost, as JSON
//
// It is a program of its own because a process starts with the peak memory of the one that started it: Linux copies the
// maximum resident set of the old image to the new one (fs/exec.c, exec_mmap), so that a large benchmark that runs a small
// program directly would measure itself.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/dnsmesh/kubectl-dnsmesh/internal/clustergen"
)

// pageSize is the Limit of the bare lister: that of client-go's pager and of kubectl.
const pageSize = 500

func main() {
	if err := start(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func start(args []string, out io.Writer) error {
	switch {
	case len(args) == 2 && args[0] == "list":
		return list(context.Background(), args[1], out)
	case len(args) >= 2 && args[0] == "run":
		return measure(args[1:], out)
	}
	return errors.New("the arguments are list KUBECONFIG, or run PROGRAM with its own")
}

// list reads the four kinds side by side, in pages of protobuf, and keeps nothing.
func list(ctx context.Context, kubeconfig string, out io.Writer) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.ContentType, config.QPS = runtime.ContentTypeProtobuf, -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	type page func(context.Context, metav1.ListOptions) (objects int, next string, err error)
	pages := []page{
		func(ctx context.Context, o metav1.ListOptions) (int, string, error) {
			l, err := client.CoreV1().Namespaces().List(ctx, o)
			return len(l.Items), l.Continue, err
		},
		func(ctx context.Context, o metav1.ListOptions) (int, string, error) {
			l, err := client.CoreV1().Services("").List(ctx, o)
			return len(l.Items), l.Continue, err
		},
		func(ctx context.Context, o metav1.ListOptions) (int, string, error) {
			l, err := client.DiscoveryV1().EndpointSlices("").List(ctx, o)
			return len(l.Items), l.Continue, err
		},
		func(ctx context.Context, o metav1.ListOptions) (int, string, error) {
			l, err := client.CoreV1().Pods("").List(ctx, o)
			return len(l.Items), l.Continue, err
		},
	}
	counts := make([]int, len(pages))
	group, ctx := errgroup.WithContext(ctx)
	for i, get := range pages {
		group.Go(func() error {
			o := metav1.ListOptions{Limit: pageSize}
			for {
				n, next, err := get(ctx, o)
				if err != nil {
					return err
				}
				counts[i] += n
				if o.Continue = next; next == "" {
					return nil
				}
			}
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, counts)
	return err
}

// measure runs a program, without input and output but for its errors, and writes its cost. The status of the program is
// part of that.
func measure(args []string, out io.Writer) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	begin := time.Now()
	err := cmd.Run()
	wall := time.Since(begin)
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		return err
	}
	state := cmd.ProcessState
	return json.NewEncoder(out).Encode(clustergen.Cost{
		Status: state.ExitCode(), Wall: wall, CPU: state.UserTime() + state.SystemTime(), Peak: peak(state),
	})
}
