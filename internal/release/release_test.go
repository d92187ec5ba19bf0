package release

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/dnsmesh/kubectl-dnsmesh/internal/licences"
	"github.com/dnsmesh/kubectl-dnsmesh/internal/realtool"
)

type krewManifest struct {
	Metadata struct{ Name string }
	Spec     struct {
		Version   string
		Platforms []struct {
			Selector    struct{ MatchLabels map[string]string }
			URI, SHA256 string
			Bin         string
			Files       []struct{ From, To string }
		}
	}
}

type goreleaserConfig struct {
	ProjectName string `json:"project_name"`
	Builds      []struct {
		Main, Binary string
		LDFlags      []string
		Flags, Env   []string
		GoOS, GoArch []string
	}
	Archives []struct {
		NameTemplate    string `json:"name_template"`
		Formats         []string
		FormatOverrides []struct {
			GoOS    string
			Formats []string
		} `json:"format_overrides"`
		Files []string
	}
}

// TestArchives compares what krew fetches with what a release makes.
func TestArchives(t *testing.T) {
	var krew krewManifest
	read(t, ".krew.yaml", &krew)
	var rel goreleaserConfig
	read(t, ".goreleaser.yaml", &rel)
	if len(rel.Builds) != 1 || len(rel.Archives) != 1 {
		t.Fatalf(".goreleaser.yaml has %d builds and %d archives, want one of each", len(rel.Builds), len(rel.Archives))
	}
	build, archive := rel.Builds[0], rel.Archives[0]

	// krew runs "kubectl NAME" as kubectl-NAME; dashes of the name would be underscores.
	if want := "kubectl-" + krew.Metadata.Name; build.Binary != want || rel.ProjectName != want {
		t.Errorf("the binary is %q and the project %q, want %q", build.Binary, rel.ProjectName, want)
	}

	type asset struct{ Platform, URI, Bin string }
	var want, got []asset
	for _, goos := range build.GoOS {
		for _, goarch := range build.GoArch {
			format, bin := archive.Formats[0], build.Binary
			for _, o := range archive.FormatOverrides {
				if o.GoOS == goos {
					format = o.Formats[0]
				}
			}
			if goos == "windows" {
				bin += ".exe"
			}
			name := strings.NewReplacer("{{ .ProjectName }}", rel.ProjectName, "v{{ .Version }}", krew.Spec.Version,
				"{{ .Os }}", goos, "{{ .Arch }}", goarch).Replace(archive.NameTemplate)
			want = append(want, asset{
				Platform: goos + "/" + goarch,
				URI: fmt.Sprintf("https://github.com/dnsmesh/kubectl-dnsmesh/releases/download/%s/%s.%s",
					krew.Spec.Version, name, format),
				Bin: bin,
			})
		}
	}
	var licensed []string
	for _, p := range licences.Platforms() {
		licensed = append(licensed, p.OS+"/"+p.Arch)
	}
	sum := regexp.MustCompile(`^[0-9a-f]{64}$`)
	for _, p := range krew.Spec.Platforms {
		platform := p.Selector.MatchLabels["os"] + "/" + p.Selector.MatchLabels["arch"]
		got = append(got, asset{Platform: platform, URI: p.URI, Bin: p.Bin})
		if !sum.MatchString(p.SHA256) {
			t.Errorf("%s: sha256 is %q, want 64 hexadecimal digits", platform, p.SHA256)
		}
		for _, f := range p.Files {
			if f.From != p.Bin && !slices.Contains(archive.Files, f.From) {
				t.Errorf("%s: krew takes %s out of the archive, which does not hold it", platform, f.From)
			}
		}
		for _, file := range []string{p.Bin, "LICENSE", "THIRD_PARTY_LICENSES"} {
			if !slices.ContainsFunc(p.Files, func(f struct{ From, To string }) bool { return f.From == file }) {
				t.Errorf("%s: krew does not install %s", platform, file)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("archives that krew fetches (-made +fetched):\n%s", diff)
	}
	slices.Sort(licensed)
	var released []string
	for _, a := range want {
		released = append(released, a.Platform)
	}
	slices.Sort(released)
	if diff := cmp.Diff(released, licensed); diff != "" {
		t.Errorf("platforms (-released +in THIRD_PARTY_LICENSES):\n%s", diff)
	}
	for _, file := range archive.Files {
		if _, err := os.Stat(filepath.Join("..", "..", file)); err != nil {
			t.Errorf("a file of the archives: %v", err)
		}
	}
}

// TestBuildFlags compares how a release builds with how make does.
func TestBuildFlags(t *testing.T) {
	var rel goreleaserConfig
	read(t, ".goreleaser.yaml", &rel)
	makefile, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	b := rel.Builds[0]
	want := fmt.Sprintf("%s go build %s -ldflags '%s' -o $(BINARY) %s", strings.Join(b.Env, " "), strings.Join(b.Flags, " "),
		strings.Replace(b.LDFlags[0], "v{{ .Version }}", "$(VERSION)", 1), b.Main)
	if !strings.Contains(string(makefile), want) {
		t.Errorf("the Makefile has no command %q", want)
	}
}

// TestCompletion has a real kubectl complete "kubectl dnsmesh" through the script, with a plugin that shows what it was
// asked.
func TestCompletion(t *testing.T) {
	kubectl := realtool.Tool(t, "kubectl")
	script, err := os.ReadFile(filepath.Join("..", "..", "kubectl_complete-dnsmesh"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(kubectl, filepath.Join(dir, "kubectl")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"kubectl_complete-dnsmesh": string(script),
		"kubectl-dnsmesh":          "#!/bin/sh\nprintf '%s|' \"$@\"; printf '\\n:4\\n'\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(filepath.Join(dir, "kubectl"), "__complete", "dnsmesh", "doctor", "--context", "a b", "")
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := "__complete|doctor|--context|a b||\n:4\n"; string(out) != want {
		t.Errorf("kubectl completes %q, want %q", out, want)
	}
	info, err := os.Stat(filepath.Join("..", "..", "kubectl_complete-dnsmesh"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode()&0o111 == 0 {
		t.Error("kubectl_complete-dnsmesh is not executable")
	}
}

func read(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatalf("reading %s: %v", name, err)
	}
}
