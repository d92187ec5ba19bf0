package cluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestImage(t *testing.T) {
	const digest = "@sha256:2169b3b96af988cf69d7dd69efbcc59433eb027320eb185c6110e0850b997870"
	for _, tc := range []struct {
		image   string
		impl    Implementation
		version string
	}{
		{"coredns/coredns:1.11.3", CoreDNS, "1.11.3"},
		{"docker.io/coredns/coredns:1.9.4", CoreDNS, "1.9.4"},
		{"registry.k8s.io/coredns/coredns:v1.11.1", CoreDNS, "1.11.1"},
		{"k8s.gcr.io/coredns:1.6.7", CoreDNS, "1.6.7"},
		{"k8s.gcr.io/coredns/coredns:v1.8.0", CoreDNS, "1.8.0"},
		{"registry.example.test:5000/coredns:1.10.1", CoreDNS, "1.10.1"},
		{"registry.example.test:5000/coredns", CoreDNS, ""},
		{"602401143452.dkr.ecr.eu-west-1.example.test/eks/coredns:v1.11.1-eksbuild.4", CoreDNS, "1.11.1"},
		{"eks/coredns:v1.9.3-eksbuild.39", CoreDNS, "1.9.3"},
		{"mcr.microsoft.com/oss/kubernetes/coredns:v1.9.4-hotfix.20240704", CoreDNS, "1.9.4"},
		{"mcr.microsoft.com/oss/v2/kubernetes/coredns:v1.12.1-1", CoreDNS, "1.12.1"},
		{"rancher/mirrored-coredns-coredns:1.10.1", CoreDNS, "1.10.1"},
		{"rancher/hardened-coredns:v1.11.1-build20240305", CoreDNS, "1.11.1"},
		{"coredns:v1.9.3-rancher1", CoreDNS, "1.9.3"},
		{"coredns:1.10.1-hotfix.20230901", CoreDNS, "1.10.1"},
		{"coredns/coredns:1.11.3" + digest, CoreDNS, "1.11.3"},
		{"coredns/coredns" + digest, CoreDNS, ""},
		{"coredns/coredns:latest", CoreDNS, ""},
		{"coredns/coredns:latest" + digest, CoreDNS, ""},
		{"coredns/coredns:011", CoreDNS, ""},
		{"registry.example.test/coredns:2023.09.01", CoreDNS, ""},
		{"registry.example.test/coredns:20230901-1.10.1", CoreDNS, "1.10.1"},
		{"registry.example.test/infra/coredns-custom:1.12.0-r2", CoreDNS, "1.12.0"},
		{"docker.io/bitnami/coredns:1.11.1-debian-11-r9", CoreDNS, "1.11.1"},
		{"cgr.dev/chainguard/coredns:1", CoreDNS, ""},
		{"quay.io/submariner/lighthouse-coredns:1.17.0", CoreDNS, ""},
		{"coredns-1.11.1:v3", CoreDNS, ""},

		{"gke.gcr.io/k8s-dns-kube-dns:1.22.28-gke.0" + digest, KubeDNS, "1.22.28"},
		{"k8s.gcr.io/k8s-dns-kube-dns-amd64:1.14.13", KubeDNS, "1.14.13"},
		{"gcr.io/google_containers/kubedns-amd64:1.9", KubeDNS, "1.9.0"},
		{"registry.k8s.io/dns/k8s-dns-dnsmasq-nanny:1.22.28", "", ""},
		{"registry.k8s.io/dns/k8s-dns-sidecar:1.22.28", "", ""},
		{"registry.k8s.io/dns/k8s-dns-node-cache:1.23.0", NodeLocalDNS, "1.23.0"},
		{"rancher/hardened-dns-node-cache:1.22.28-build20240125", NodeLocalDNS, "1.22.28"},

		{"registry.k8s.io/cpa/cluster-proportional-autoscaler:v1.8.8", "", ""},
		{"registry.example.test/coredns-autoscaler:1.0.0", "", ""},
		{"quay.io/openshift-release-dev/ocp-v4.0-art-dev" + digest, "", ""},
		{"registry.example.test/team/web:1.2.3", "", ""},
		{"", "", ""},
		{":", "", ""},
		{"@", "", ""},
	} {
		impl := parseImage(tc.image).implementation()
		if impl != tc.impl {
			t.Errorf("%q holds %q, want %q", tc.image, impl, tc.impl)
		}
		if v := serverVersion(impl, tc.image, nil); v != tc.version {
			t.Errorf("%q has version %q, want %q", tc.image, v, tc.version)
		}
	}
}

func TestVersionByLabel(t *testing.T) {
	labels := map[string]string{"app.kubernetes.io/version": "1.11.1", "helm.sh/chart": "coredns-1.29.0"}
	for _, tc := range []struct{ image, want string }{
		{"registry.example.test/dns@sha256:0123", "1.11.1"},
		{"coredns/coredns:stamp-7", "1.11.1"},
		{"coredns/coredns:1.10.0", "1.10.0"},
		// A chart's label is the version that the chart was made for, and "latest" is another.
		{"coredns/coredns:latest", ""},
		{"coredns/coredns", ""},
		{"quay.io/submariner/lighthouse-coredns:0.17.0", ""},
	} {
		if got := serverVersion(CoreDNS, tc.image, labels); got != tc.want {
			t.Errorf("%s: version %q, want %q", tc.image, got, tc.want)
		}
	}
	if got := serverVersion(CoreDNS, "coredns/coredns@sha256:0123", map[string]string{"helm.sh/chart": "coredns-1.29.0"}); got != "" {
		t.Errorf("the version of a chart counts as %q", got)
	}
}

func TestParseImage(t *testing.T) {
	got := parseImage(" registry.example.test:5000/a/coredns:v1@sha256:ab ")
	want := imageRef{Repository: "registry.example.test:5000/a/coredns", Tag: "v1", Digest: "sha256:ab"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzImage(f *testing.F) {
	for _, s := range []string{"a/b:c@d", "coredns/coredns:v1.11.1-eksbuild.4", ":/:@", "host:5000/k8s-dns-kube-dns:1.9"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ref := parseImage(s)
		if strings.Contains(ref.Tag, "/") || strings.Contains(ref.Repository, "@") {
			t.Errorf("%q is cut into %+v", s, ref)
		}
		if v := serverVersion(ref.implementation(), s, nil); v != "" && !strings.HasPrefix(v, "1.") {
			t.Errorf("%q has version %q", s, v)
		}
		networkImage(s)
	})
}
