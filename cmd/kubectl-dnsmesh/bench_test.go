package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/dnsmesh/kubectl-dnsmesh/internal/clustergen"
	"github.com/dnsmesh/kubectl-dnsmesh/internal/realtool"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster/load"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose/checks"
)

// The benchmarks report ratios between programs that took turns on the same machine in the same run, since times alone say
// nothing about another machine. The bound of each ratio stands in its name; no benchmark fails because of one.

// BenchmarkDoctorLive reads and judges a real API server that holds the cluster of clustergen.Scale(1), and compares the
// whole process with kubectl and with a client that lists the same four kinds and does nothing else.
func BenchmarkDoctorLive(b *testing.B) {
	kubectl := realtool.Tool(b, "kubectl")
	cp := realtool.New(b, realtool.Options{})
	config, err := cp.Config()
	if err != nil {
		b.Fatal(err)
	}
	begin := time.Now()
	if err := clustergen.New(1, clustergen.Scale(1)).Fill(b.Context(), config); err != nil {
		b.Fatal(err)
	}
	b.Logf("filling the API server took %v", time.Since(begin).Round(time.Second))
	kubeconfig := cp.Kubeconfig(b, "")
	bench := builtProcess(b)
	doctor := append([]string{buildPlugin(b)}, "doctor", "--kubeconfig", kubeconfig)
	lister := []string{bench, "list", kubeconfig}
	get := []string{kubectl, "--kubeconfig", kubeconfig, "get", "ns,svc,endpointslices,pods", "-A"}
	// The first of each warms the caches of the file system and of the API server.
	runProcess(b, bench, exitFindings, doctor)
	runProcess(b, bench, exitOK, lister)

	const rounds = 5 // for one of kubectl, which takes ten times as long
	var doctors, listers, kubectls []clustergen.Cost
	for b.Loop() {
		for range rounds {
			doctors = append(doctors, runProcess(b, bench, exitFindings, doctor))
			listers = append(listers, runProcess(b, bench, exitOK, lister))
		}
		kubectls = append(kubectls, runProcess(b, bench, exitOK, get))
	}
	wall := func(costs []clustergen.Cost) float64 {
		return median(costs, func(c clustergen.Cost) float64 { return c.Wall.Seconds() })
	}
	peak := func(costs []clustergen.Cost) float64 {
		return median(costs, func(c clustergen.Cost) float64 { return float64(c.Peak) / (1 << 20) })
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(wall(doctors), "doctor-s")
	b.ReportMetric(wall(listers), "lister-s")
	b.ReportMetric(wall(kubectls), "kubectl-s")
	b.ReportMetric(median(doctors, func(c clustergen.Cost) float64 { return c.CPU.Seconds() }), "doctor-cpu-s")
	b.ReportMetric(wall(doctors)/wall(kubectls), "doctor/kubectl≤0.2")
	b.ReportMetric(wall(doctors)/wall(listers), "doctor/lister≤1.5")
	b.ReportMetric(peak(doctors), "doctor-MiB≤120")
	b.ReportMetric(peak(listers), "lister-MiB")
	b.ReportMetric(peak(kubectls), "kubectl-MiB")
}

// BenchmarkScale judges a cluster and one of ten times its size. "judge" is the analysis alone, "file" reads a snapshot file
// and judges it.
func BenchmarkScale(b *testing.B) {
	for _, size := range []struct {
		name          string
		small, factor float64
	}{
		{"tenth", 0.1, 10},
		{"whole", 1, 10},
	} {
		b.Run(size.name, func(b *testing.B) {
			if testing.Short() && size.small*size.factor > 1 {
				b.Skip("a cluster of 200,000 pods takes minutes to make")
			}
			small, large := saveGenerated(b, size.small), saveGenerated(b, size.small*size.factor)
			// Ten runs of the small one take as long as one of the large one, so that whatever else the machine does
			// disturbs both alike.
			var smallRead, smallJudge, largeRead, largeJudge float64
			for b.Loop() {
				for range int(size.factor) {
					read, judge := readAndJudge(b, small)
					smallRead, smallJudge = smallRead+read/size.factor, smallJudge+judge/size.factor
				}
				read, judge := readAndJudge(b, large)
				largeRead, largeJudge = largeRead+read, largeJudge+judge
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(smallRead/float64(b.N), "read-s")
			b.ReportMetric(smallJudge/float64(b.N), "judge-s")
			b.ReportMetric(largeJudge/smallJudge, "judge-10x/1x≤11")
			b.ReportMetric((largeRead+largeJudge)/(smallRead+smallJudge), "file-10x/1x≤11")
			b.ReportMetric(smallJudge/smallRead, "judge/read-of-file")
		})
	}
}

// BenchmarkJudge is the analysis of the cluster that the bounds are stated for. Together with doctor-s of
// BenchmarkDoctorLive it gives the share of the analysis.
func BenchmarkJudge(b *testing.B) {
	path := saveGenerated(b, 1)
	r, err := load.Files(b.Context(), []string{path}, nil, load.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		judgeGenerated(b, r.Snapshot)
	}
}

// BenchmarkHelp compares the time until help is printed with kubectl's.
func BenchmarkHelp(b *testing.B) {
	kubectl := realtool.Tool(b, "kubectl")
	bench, plugin := builtProcess(b), buildPlugin(b)
	var ours, theirs []clustergen.Cost
	for b.Loop() {
		ours = append(ours, runProcess(b, bench, exitOK, []string{plugin, "--help"}))
		theirs = append(theirs, runProcess(b, bench, exitOK, []string{kubectl, "--help"}))
	}
	wall := func(costs []clustergen.Cost) float64 {
		return median(costs, func(c clustergen.Cost) float64 { return float64(c.Wall) / 1e6 })
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(wall(ours), "help-ms")
	b.ReportMetric(wall(theirs), "kubectl-ms")
	b.ReportMetric(wall(ours)/wall(theirs), "help/kubectl≤0.6")
}

// buildPlugin builds the plugin as make build does, and returns its path.
func buildPlugin(b *testing.B) string {
	b.Helper()
	return buildProgram(b, ".", "-trimpath", "-ldflags=-s -w")
}

// builtProcess builds the program that measures others, and lists.
func builtProcess(b *testing.B) string {
	b.Helper()
	return buildProgram(b, "../../internal/clustergen/benchproc")
}

func buildProgram(b *testing.B, dir string, flags ...string) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "program")
	cmd := exec.Command("go", append(append([]string{"build", "-o", path}, flags...), dir)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("building %s: %v\n%s", dir, err, out)
	}
	return path
}

// runProcess runs a program, which must end with status, and returns what it cost.
func runProcess(b *testing.B, bench string, status int, args []string) clustergen.Cost {
	b.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(b.Context(), bench, append([]string{"run"}, args...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("%s: %v\n%s", args[0], err, &stderr)
	}
	var c clustergen.Cost
	if err := json.Unmarshal(out, &c); err != nil {
		b.Fatal(err)
	}
	if c.Status != status {
		b.Fatalf("%s ended with status %d, want %d\n%s", args, c.Status, status, &stderr)
	}
	return c
}

// saveGenerated writes a snapshot file of a generated cluster, and returns its path.
func saveGenerated(b *testing.B, factor float64) string {
	b.Helper()
	in, out := io.Pipe()
	go func() { out.CloseWithError(clustergen.New(1, clustergen.Scale(factor)).WriteJSON(out)) }()
	r, err := load.Files(b.Context(), []string{"-"}, in, load.Options{Limits: load.Limits{Total: 8 << 30}})
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "cluster.json.gz")
	if err := writeFile(path, func(w io.Writer) error { return load.Write(w, r.Snapshot, "") }); err != nil {
		b.Fatal(err)
	}
	return path
}

// readAndJudge reads a snapshot file and judges it, and returns how many seconds each took.
func readAndJudge(b *testing.B, path string) (read, judge float64) {
	b.Helper()
	runtime.GC() // what the run before left
	begin := time.Now()
	r, err := load.Files(b.Context(), []string{path}, nil, load.Options{Limits: load.Limits{Total: 8 << 30}})
	if err != nil {
		b.Fatal(err)
	}
	read = time.Since(begin).Seconds()
	begin = time.Now()
	judgeGenerated(b, r.Snapshot)
	return read, time.Since(begin).Seconds()
}

func judgeGenerated(b *testing.B, s *cluster.Snapshot) {
	b.Helper()
	report := diagnose.Run(s, checks.All(), diagnose.Options{})
	if got, want := report.Summary.Errors, len(clustergen.Faults()); got != want {
		b.Fatalf("%d errors, want %d", got, want)
	}
}

// median returns the middle of the values that f gives.
func median[T any](all []T, f func(T) float64) float64 {
	values := make([]float64, len(all))
	for i, v := range all {
		values[i] = f(v)
	}
	slices.Sort(values)
	return values[len(values)/2]
}
