package cluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/corefile"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

const kubeadm = `
kind: Node
metadata: {name: n1, annotations: {kubeadm.alpha.kubernetes.io/cri-socket: "unix:///run/containerd.sock"}}
status: {nodeInfo: {kubeletVersion: v1.33.1}}
---
kind: ConfigMap
metadata: {name: kubeadm-config, namespace: kube-system}
data:
  ClusterConfiguration: |
    networking:
      dnsDomain: cluster.local # default
      serviceSubnet: 10.96.0.0/12
---
kind: ConfigMap
metadata: {name: coredns, namespace: kube-system}
data:
  Corefile: |
    .:53 {
        errors
        kubernetes cluster.local in-addr.arpa ip6.arpa {
            pods insecure
            fallthrough in-addr.arpa ip6.arpa
        }
        forward . /etc/resolv.conf
        cache 30
    }
---
kind: Service
metadata: {name: kube-dns, namespace: kube-system, labels: {k8s-app: kube-dns, kubernetes.io/name: CoreDNS}}
spec:
  selector: {k8s-app: kube-dns}
  clusterIP: 10.96.0.10
  clusterIPs: [10.96.0.10, "2001:db8::a"]
  ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53}]
---
kind: Pod
metadata: {name: coredns-1, namespace: kube-system, labels: {k8s-app: kube-dns, owner: Deployment.coredns}}
spec: &spec
  containers:
  - name: coredns
    image: registry.k8s.io/coredns/coredns:v1.12.0
    args: [-conf, /etc/coredns/Corefile]
    volumeMounts: [{name: config-volume, mountPath: /etc/coredns}]
  volumes:
  - name: config-volume
    configMap: {name: coredns, items: [{key: Corefile, path: Corefile}]}
status: {podIPs: [{ip: 10.244.0.2}]}
---
kind: Pod
metadata: {name: kindnet-1, namespace: kube-system, labels: {owner: DaemonSet.kindnet}}
spec:
  containers: [{name: kindnet-cni, image: "docker.io/kindest/kindnetd:v20240202-8f1494ea"}]
`

// world is a snapshot as a distribution gives it, and what follows from it.
type world struct {
	name   string
	yaml   string
	change func(*Snapshot)
	want   summary
	corefile,
	path string
}

// summary is the part of Facts that a table can hold.
type summary struct {
	Domain, Source string
	Zones          []string
	DNS            string
	Version        string
	Addresses      []string
	Services       []string
	Ready          int
	NodeLocal      string
	NodeServer     string
	Distribution   string
	CNI            string
	Announcers     []string
	Servers        []string
}

func summarise(f *Facts) summary {
	s := summary{
		Domain: f.Domain, Source: f.DomainSource, Zones: f.Zones, NodeServer: f.NodeServer,
		Distribution: strings.TrimSpace(f.Distribution.Name + " " + f.Distribution.Version),
		CNI:          strings.TrimSpace(f.CNI + " " + f.CNIVersion), Announcers: f.Announcers,
	}
	describe := func(srv *Server) string {
		out := string(srv.Implementation)
		if srv.Workload != nil {
			out += " " + srv.Workload.Object.String()
		}
		if srv.Assumed {
			out += " assumed"
		}
		return out
	}
	if f.DNS != nil {
		s.DNS, s.Version, s.Addresses, s.Ready = describe(f.DNS), f.DNS.Version, f.DNS.Addresses, f.DNS.Ready
		for _, svc := range f.DNS.Services {
			s.Services = append(s.Services, svc.Namespace+"/"+svc.Name)
		}
	}
	if f.NodeLocal != nil {
		s.NodeLocal = strings.Join(append([]string{describe(f.NodeLocal)}, f.NodeLocal.Addresses...), " ")
	}
	for _, srv := range f.Servers {
		s.Servers = append(s.Servers, describe(srv))
	}
	return s
}

func worlds() []world {
	return []world{
		{
			name: "kubeadm", yaml: strings.Replace(kubeadm, "&spec", "", 1),
			change: func(s *Snapshot) { s.ServerVersion = "v1.33.2" },
			want: summary{
				Domain: "cluster.local.", Source: "dnsDomain in ConfigMap kube-system/kubeadm-config", Zones: []string{"cluster.local."},
				DNS: "coredns Deployment kube-system/coredns", Version: "1.12.0", Addresses: []string{"10.96.0.10", "2001:db8::a"},
				Services: []string{"kube-system/kube-dns"}, Ready: 1, Distribution: "kubeadm v1.33.2", CNI: "kindnet",
				Servers: []string{"coredns Deployment kube-system/coredns"},
			},
			corefile: "ConfigMap kube-system/coredns Corefile", path: "/etc/coredns/Corefile",
		},
		{
			name: "k3s", yaml: k3s,
			want: summary{
				Domain: "lab.example.", Source: "kubernetes plugin in ConfigMap kube-system/coredns Corefile",
				Zones: []string{"lab.example.", "old.example.", "extra.example."},
				DNS:   "coredns Deployment kube-system/coredns", Version: "1.12.0", Addresses: []string{"10.43.0.10"},
				Services: []string{"kube-system/kube-dns"}, Distribution: "k3s v1.32.3+k3s1", CNI: "flannel",
				Servers: []string{"coredns Deployment kube-system/coredns"},
			},
			corefile: "ConfigMap kube-system/coredns Corefile", path: "/etc/coredns/Corefile",
		},
		{
			name: "rke2 with canal", yaml: rke2,
			want: summary{
				Domain: "cluster.local.", Source: "kubernetes plugin in ConfigMap kube-system/rke2-coredns-rke2-coredns Corefile", Zones: []string{"cluster.local."},
				DNS: "coredns Deployment kube-system/rke2-coredns-rke2-coredns", Version: "1.11.1",
				Addresses: []string{"10.43.0.10"}, Services: []string{"kube-system/rke2-coredns-rke2-coredns"},
				Distribution: "rke2 v1.29.4+rke2r1", CNI: "canal 3.27.3",
				Servers: []string{"coredns Deployment kube-system/rke2-coredns-rke2-coredns"},
			},
			corefile: "ConfigMap kube-system/rke2-coredns-rke2-coredns Corefile", path: "/etc/coredns/Corefile",
		},
		{
			name: "openshift by digest", yaml: openshift,
			change: func(s *Snapshot) { s.APIGroups = []string{"apps", "config.openshift.io"} },
			want: summary{
				Domain: "cluster.local.", Source: "kubernetes plugin in ConfigMap openshift-dns/dns-default Corefile", Zones: []string{"cluster.local."},
				DNS: "coredns DaemonSet openshift-dns/dns-default", Addresses: []string{"172.30.0.10"},
				Services: []string{"openshift-dns/dns-default"}, Distribution: "openshift v1.30.4", CNI: "ovn-kubernetes",
				Servers: []string{"coredns DaemonSet openshift-dns/dns-default"},
			},
			corefile: "ConfigMap openshift-dns/dns-default Corefile", path: "/etc/coredns/Corefile",
		},
		{
			name: "gke with kube-dns and node-local-dns", yaml: gke,
			change: func(s *Snapshot) { s.ServerVersion = "v1.30.5-gke.1014001" },
			want: summary{
				Domain: "gke.example.", Source: "argument --domain of Deployment kube-system/kube-dns", Zones: []string{"gke.example."},
				DNS: "kube-dns Deployment kube-system/kube-dns", Version: "1.23.0", Addresses: []string{"10.96.0.10"},
				Services: []string{"kube-system/kube-dns"}, Distribution: "gke v1.30.5-gke.1014001",
				NodeLocal: "node-local-dns DaemonSet kube-system/node-local-dns 169.254.20.10 10.96.0.10",
				Servers:   []string{"node-local-dns DaemonSet kube-system/node-local-dns", "kube-dns Deployment kube-system/kube-dns"},
			},
		},
		{
			name: "gke with cloud dns",
			yaml: `
kind: Node
metadata: {name: n1, labels: {cloud.google.com/gke-nodepool: pool}}
---
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec: {selector: {k8s-app: kube-dns}, clusterIP: 10.96.0.10, ports: [{port: 53, protocol: UDP}]}
`,
			want: summary{
				Domain: "cluster.local.", DNS: "cloud-dns", Addresses: []string{"10.96.0.10"}, Services: []string{"kube-system/kube-dns"},
				Distribution: "gke", Servers: []string{"cloud-dns"},
			},
		},
		{
			name: "manifests of a gke cluster", yaml: "kind: Node\nmetadata: {labels: {cloud.google.com/gke-nodepool: pool}}",
			change: func(s *Snapshot) { s.Partial = true },
			want:   summary{Domain: "cluster.local.", DNS: "unknown", Distribution: "gke", Servers: []string{"unknown"}},
		},
		{
			name: "gke with cloud dns and idle kube-dns pods", yaml: gke,
			change: func(s *Snapshot) {
				s.ServerVersion = "v1.30.5-gke.1014001"
				s.Templates = s.Templates[:1]
				s.Texts = []*Text{{Kind: TextPodResolvConf, Name: "r", Data: "nameserver 169.254.169.254\nsearch a.svc.gke.example svc.gke.example gke.example\n"}}
			},
			want: summary{
				Domain: "gke.example.", Source: "search list of r", DNS: "cloud-dns", Addresses: []string{"169.254.169.254"},
				Services: []string{"kube-system/kube-dns"}, Distribution: "gke v1.30.5-gke.1014001",
				Servers: []string{"kube-dns Deployment kube-system/kube-dns", "cloud-dns"},
			},
		},
		{
			name: "eks auto mode",
			yaml: `
kind: Node
metadata: {name: n1, labels: {eks.amazonaws.com/compute-type: auto}}
status: {nodeInfo: {kubeletVersion: v1.33.1-eks-f5be8fb}}
`,
			want: summary{
				Domain: "cluster.local.", DNS: "coredns", NodeServer: "the CoreDNS that EKS Auto Mode runs on each of its nodes",
				Distribution: "eks-auto v1.33.1-eks-f5be8fb", Servers: []string{"coredns"},
			},
		},
		{
			name: "aks with local dns and cilium",
			yaml: `
kind: Node
metadata: {name: n1, labels: {kubernetes.azure.com/cluster: c, kubernetes.azure.com/localdns-state: enabled}}
---
kind: Node
metadata: {name: n2, labels: {kubernetes.azure.com/cluster: c}}
---
kind: DaemonSet
metadata: {name: cilium, namespace: kube-system}
spec: {template: {spec: {containers: [{name: cilium-agent, image: "quay.io/cilium/cilium:v1.16.6@sha256:12"}]}}}
---
kind: DaemonSet
metadata: {name: azure-cns, namespace: kube-system}
spec: {template: {spec: {containers: [{name: cns-container, image: "mcr.microsoft.com/containernetworking/azure-cns:v1.6.13"}]}}}
`,
			want: summary{Domain: "cluster.local.", NodeServer: "AKS LocalDNS", Distribution: "aks", CNI: "cilium 1.16.6"},
		},
		{
			name: "announcers",
			yaml: `
kind: ConfigMap
metadata: {name: cilium-config, namespace: cilium}
data: {enable-l2-announcements: "true"}
---
kind: DaemonSet
metadata: {name: speaker, namespace: metallb-system}
spec: {template: {spec: {containers: [{name: speaker, image: "quay.io/metallb/speaker:v0.14.8"}]}}}
---
kind: DaemonSet
metadata: {name: kube-vip-ds, namespace: kube-system}
spec: {template: {spec: {containers: [{name: kube-vip, image: "ghcr.io/kube-vip/kube-vip:v0.8.0"}, {name: x, image: "ghcr.io/kube-vip/kube-vip-cloud-provider:v0.0.10"}]}}}
`,
			want: summary{Domain: "cluster.local.", Announcers: []string{"cilium", "kube-vip", "metallb"}},
		},
		{
			name: "a server of somebody else behind port 53",
			yaml: `
kind: Service
metadata: {name: resolver, namespace: dns}
spec: {selector: {app: unbound}, clusterIP: 10.96.3.3, ports: [{port: 53, protocol: UDP}]}
---
kind: Deployment
metadata: {name: unbound, namespace: dns}
spec: {template: {metadata: {labels: {app: unbound}}, spec: {containers: [{name: unbound, image: "registry.example.test/unbound:1.20.0"}]}}}
---
kind: Deployment
metadata: {name: web, namespace: dns}
spec: {template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "registry.example.test/web:1"}]}}}
`,
			want: summary{Domain: "cluster.local.", Servers: []string{"unknown Deployment dns/unbound"}},
		},
		{
			name: "a DNS service without selector",
			yaml: `
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec: {clusterIP: 10.96.0.10, ports: [{port: 53, protocol: UDP}]}
---
kind: EndpointSlice
metadata: {name: kube-dns-1, namespace: kube-system, labels: {kubernetes.io/service-name: kube-dns}}
addressType: IPv4
endpoints:
- {addresses: [10.244.0.7]}
- {addresses: [10.244.0.8], targetRef: {kind: Pod, name: named-1}}
---
kind: Pod
metadata: {name: core-1, namespace: infra, labels: {owner: Deployment.core}}
spec: {containers: [{name: c, image: "registry.example.test/coredns:1.9.1"}]}
status: {podIPs: [{ip: 10.244.0.7}]}
---
kind: Pod
metadata: {name: named-1, namespace: kube-system, labels: {owner: DaemonSet.named}}
spec: {containers: [{name: c, image: "registry.example.test/bind9:9.18"}]}
---
kind: Pod
metadata: {name: named-1, namespace: infra}
spec: {containers: [{name: c, image: "registry.example.test/other"}]}
`,
			want: summary{
				Domain: "cluster.local.", DNS: "unknown DaemonSet kube-system/named", Addresses: []string{"10.96.0.10"}, Ready: 1,
				Services: []string{"kube-system/kube-dns"},
				Servers:  []string{"coredns Deployment infra/core", "unknown DaemonSet kube-system/named"},
			},
		},
		{
			name: "pods that may not be read",
			yaml: `
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec: {selector: {k8s-app: kube-dns}, clusterIP: 10.96.0.10, ports: [{port: 53, protocol: UDP}]}
`,
			change: func(s *Snapshot) { s.Absent[Pods], s.Absent[ConfigMaps] = "forbidden", "forbidden" },
			want: summary{
				Domain: "cluster.local.", DNS: "unknown", Addresses: []string{"10.96.0.10"}, Services: []string{"kube-system/kube-dns"},
				Servers: []string{"unknown"},
			},
		},
		{
			name: "manifests without a DNS server",
			yaml: `
kind: Service
metadata: {name: web, namespace: shop}
spec: {ports: [{port: 80}]}
`,
			change: func(s *Snapshot) { s.Partial = true },
			want:   summary{Domain: "cluster.local.", DNS: "coredns assumed", Servers: []string{"coredns assumed"}},
		},
		{
			name: "a Corefile and resolv.conf as files",
			yaml: `
kind: ConfigMap
metadata: {name: coredns-custom, namespace: kube-system}
data: {log.override: "log\n"}
`,
			change: func(s *Snapshot) {
				s.Partial = true
				s.Texts = []*Text{
					{Kind: TextCorefile, Name: "cluster/Corefile", Data: ".:53 {\n\tkubernetes cluster.local\n\timport custom/*.override\n}\n"},
					{Kind: TextPodResolvConf, Name: "cluster/resolv.conf", Data: "search shop.svc.Example.Internal svc.example.internal example.internal corp.test\nnameserver 10.96.0.10\n"},
				}
			},
			want: summary{
				Domain: "example.internal.", Source: "search list of cluster/resolv.conf", Zones: []string{"cluster.local."},
				DNS: "coredns", Servers: []string{"coredns"},
			},
			corefile: "cluster/Corefile", path: "/etc/coredns/Corefile",
		},
		{
			name: "what the user says",
			yaml: strings.Replace(kubeadm, "&spec", "", 1),
			change: func(s *Snapshot) {
				s.Override = Override{Implementation: KubeDNS, Version: "v1.22.28", Domain: "Said.Example"}
			},
			want: summary{
				Domain: "said.example.", Source: "as given", Zones: []string{"said.example."},
				DNS: "kube-dns Deployment kube-system/coredns", Version: "1.22.28", Addresses: []string{"10.96.0.10", "2001:db8::a"},
				Services: []string{"kube-system/kube-dns"}, Ready: 1, Distribution: "kubeadm v1.33.1", CNI: "kindnet",
				Servers: []string{"kube-dns Deployment kube-system/coredns"},
			},
		},
	}
}

const k3s = `
kind: Node
metadata:
  name: n1
  labels: {node.kubernetes.io/instance-type: k3s}
status: {nodeInfo: {kubeletVersion: v1.32.3+k3s1}}
---
kind: ConfigMap
metadata: {name: coredns, namespace: kube-system}
data:
  Corefile: |
    .:53 {
        kubernetes lab.example old.example in-addr.arpa {$EXTRA} {
          pods insecure
        }
        hosts /etc/coredns/NodeHosts {
          ttl 60
          fallthrough
        }
        import /etc/coredns/custom/*.override
        forward . /etc/resolv.conf
    }
    import /etc/coredns/custom/*.server
  NodeHosts: |
    192.0.2.10 n1
---
kind: ConfigMap
metadata: {name: coredns-custom, namespace: kube-system}
data:
  b.override: "log\n"
  a.override: "debug\n"
  corp.server: "corp.test:53 {\n    forward . 192.0.2.53\n}\n"
---
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec: {selector: {k8s-app: kube-dns}, clusterIP: 10.43.0.10, ports: [{port: 53, protocol: UDP}]}
---
kind: Deployment
metadata: {name: coredns, namespace: kube-system}
spec:
  template:
    metadata: {labels: {k8s-app: kube-dns}}
    spec:
      containers:
      - name: coredns
        image: rancher/mirrored-coredns-coredns:1.12.0
        args: ["-conf", "/etc/coredns/Corefile"]
        env: [{name: EXTRA, value: extra.example}]
        volumeMounts:
        - {name: config-volume, mountPath: /etc/coredns, readOnly: true}
        - {name: custom-config-volume, mountPath: /etc/coredns/custom, readOnly: true}
      volumes:
      - name: config-volume
        configMap: {name: coredns, items: [{key: Corefile, path: Corefile}, {key: NodeHosts, path: NodeHosts}]}
      - name: custom-config-volume
        configMap: {name: coredns-custom, optional: true}
`

const rke2 = `
kind: Node
metadata: {name: n1, labels: {node.kubernetes.io/instance-type: rke2}}
status: {nodeInfo: {kubeletVersion: v1.29.4+rke2r1}}
---
kind: ConfigMap
metadata: {name: rke2-coredns-rke2-coredns, namespace: kube-system}
data:
  Corefile: |
    .:53 {
        kubernetes  cluster.local  cluster.local in-addr.arpa ip6.arpa
        forward  . /etc/resolv.conf
    }
---
kind: Service
metadata: {name: rke2-coredns-rke2-coredns, namespace: kube-system, labels: {k8s-app: kube-dns, kubernetes.io/name: CoreDNS}}
spec: {selector: {app.kubernetes.io/instance: rke2-coredns}, clusterIP: 10.43.0.10, ports: [{port: 53, protocol: UDP}]}
---
kind: Deployment
metadata: {name: rke2-coredns-rke2-coredns, namespace: kube-system}
spec:
  template:
    metadata: {labels: {app.kubernetes.io/instance: rke2-coredns, k8s-app: kube-dns}}
    spec:
      containers:
      - name: coredns
        image: rancher/hardened-coredns:v1.11.1-build20240305
        args: ["-conf", "/etc/coredns/Corefile"]
        volumeMounts: [{name: config-volume, mountPath: /etc/coredns}]
      volumes: [{name: config-volume, configMap: {name: rke2-coredns-rke2-coredns, items: [{key: Corefile, path: Corefile}]}}]
---
kind: Deployment
metadata: {name: rke2-coredns-rke2-coredns-autoscaler, namespace: kube-system}
spec:
  template:
    metadata: {labels: {k8s-app: kube-dns-autoscaler}}
    spec: {containers: [{name: autoscaler, image: "rancher/hardened-cluster-autoscaler:v1.8.10"}]}
---
kind: DaemonSet
metadata: {name: rke2-canal, namespace: kube-system}
spec:
  template:
    spec:
      containers:
      - {name: calico-node, image: "rancher/hardened-calico:v3.27.3-build20240423"}
      - {name: kube-flannel, image: "rancher/hardened-flannel:v0.25.1-build20240423"}
`

const openshift = `
kind: Node
metadata: {name: n1}
status: {nodeInfo: {kubeletVersion: v1.30.4}}
---
kind: ConfigMap
metadata: {name: dns-default, namespace: openshift-dns}
data:
  Corefile: |
    .:5353 {
        kubernetes cluster.local in-addr.arpa ip6.arpa
        forward . /etc/resolv.conf {
            policy sequential
        }
        ocp_dnsnameresolver {
            namespaces a b
        }
    }
---
kind: Service
metadata: {name: dns-default, namespace: openshift-dns}
spec:
  selector: {dns.operator.openshift.io/daemonset-dns: default}
  clusterIP: 172.30.0.10
  ports: [{name: dns, port: 53, protocol: UDP, targetPort: dns}, {name: metrics, port: 9154, targetPort: metrics}]
---
kind: DaemonSet
metadata: {name: dns-default, namespace: openshift-dns}
spec:
  template:
    metadata: {labels: {dns.operator.openshift.io/daemonset-dns: default}}
    spec:
      containers:
      - name: kube-rbac-proxy
        image: quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:1111
      - name: dns
        image: quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:2222
        command: [coredns]
        args: [-conf, /etc/coredns/Corefile]
        ports: [{name: dns, containerPort: 5353, protocol: UDP}]
        volumeMounts: [{name: config-volume, mountPath: /etc/coredns}]
      volumes: [{name: config-volume, configMap: {name: dns-default, items: [{key: Corefile, path: Corefile}]}}]
---
kind: DaemonSet
metadata: {name: ovnkube-node, namespace: openshift-ovn-kubernetes}
spec: {template: {spec: {containers: [{name: ovn-controller, image: "quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:3333"}]}}}
`

const gke = `
kind: ConfigMap
metadata: {name: kube-dns, namespace: kube-system}
data: {stubDomains: '{"Corp.Test": ["192.0.2.53"]}'}
---
kind: ConfigMap
metadata: {name: node-local-dns, namespace: kube-system}
data:
  Corefile: |
    gke.example:53 {
        forward . __PILLAR__CLUSTER__DNS__
    }
    lan.test:53 {
        forward . 192.0.2.1
    }
    .:53 {
        forward . __PILLAR__UPSTREAM__SERVERS__
    }
---
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec: {selector: {k8s-app: kube-dns}, clusterIP: 10.96.0.10, ports: [{port: 53, protocol: UDP}]}
---
kind: Deployment
metadata: {name: kube-dns, namespace: kube-system}
spec:
  template:
    metadata: {labels: {k8s-app: kube-dns}}
    spec:
      containers:
      - {name: dnsmasq, image: "gke.gcr.io/k8s-dns-dnsmasq-nanny:1.23.0-gke.9", args: ["--server=/gke.example/127.0.0.1#10053"]}
      - {name: kubedns, image: "gke.gcr.io/k8s-dns-kube-dns:1.23.0-gke.9@sha256:48d7", args: ["--domain=gke.example.", "--dns-port=10053"]}
---
kind: DaemonSet
metadata: {name: node-local-dns, namespace: kube-system}
spec:
  template:
    metadata: {labels: {k8s-app: node-local-dns}}
    spec:
      hostNetwork: true
      containers:
      - name: node-cache
        image: gke.gcr.io/k8s-dns-node-cache:1.23.0-gke.9
        args: ["-localip", "169.254.20.10,10.96.0.10", "-conf", "/etc/Corefile", "-upstreamsvc", "kube-dns-upstream"]
        volumeMounts: [{name: config-volume, mountPath: /etc/coredns}]
      volumes: [{name: config-volume, configMap: {name: node-local-dns, items: [{key: Corefile, path: Corefile.base}]}}]
`

func TestDerive(t *testing.T) {
	for _, w := range worlds() {
		t.Run(w.name, func(t *testing.T) {
			s := w.snapshot(t)
			f := Derive(s)
			if diff := cmp.Diff(w.want, summarise(f), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			var source, path string
			if f.DNS != nil && f.DNS.Corefile != nil {
				source, path = sourceName(f.DNS.Corefile.Object, f.DNS.Corefile.Key), f.DNS.Corefile.Path
				if f.DNS.Corefile.ExpandErr != nil {
					t.Errorf("the Corefile is refused: %v", f.DNS.Corefile.ExpandErr)
				}
			}
			if source != w.corefile || path != w.path {
				t.Errorf("Corefile %q at %q, want %q at %q", source, path, w.corefile, w.path)
			}
		})
	}
}

func (w world) snapshot(t testing.TB) *Snapshot {
	s := snapshot(t, w.yaml)
	if w.change != nil {
		w.change(s)
	}
	return s
}

func TestDeriveEmpty(t *testing.T) {
	for _, s := range []*Snapshot{{}, {Partial: true}, {Pods: []*Pod{{}}, Templates: []*Workload{{}}, Nodes: []*corev1.Node{{}}, Services: []*corev1.Service{{}}}} {
		f := Derive(s)
		if f.Domain != "cluster.local." || f.DomainSource != "" {
			t.Errorf("domain %q from %q", f.Domain, f.DomainSource)
		}
		if got := NewModel(s, f, NewIndex(s)).Answer("web.shop.svc.cluster.local."); got.HasAddress() {
			t.Errorf("a cluster without Services answers %s", got)
		}
	}
}

func TestDeriveOrder(t *testing.T) {
	for _, w := range worlds() {
		s := w.snapshot(t)
		want := summarise(Derive(s))
		for seed := range uint64(8) {
			if diff := cmp.Diff(want, summarise(Derive(shuffled(s, seed)))); diff != "" {
				t.Fatalf("%s in another order:\n%s", w.name, diff)
			}
		}
	}
}

func TestImports(t *testing.T) {
	s := snapshot(t, k3s)
	cf := Derive(s).DNS.Corefile
	var blocks, plugins []string
	for _, b := range cf.Expanded.Blocks {
		blocks = append(blocks, b.Keys[0].Text)
	}
	for _, d := range cf.Expanded.Blocks[0].Body {
		plugins = append(plugins, d.Name.Text)
	}
	if diff := cmp.Diff([]string{".:53", "corp.test:53"}, blocks); diff != "" {
		t.Errorf("server blocks: %s", diff)
	}
	if diff := cmp.Diff([]string{"kubernetes", "hosts", "debug", "log", "forward"}, plugins); diff != "" {
		t.Errorf("plugins in the order of file names: %s", diff)
	}
	got, err := cf.Import("/etc/coredns/custom/*.server")
	want := []corefile.Source{{
		Name: "ConfigMap kube-system/coredns-custom corp.server", Path: "/etc/coredns/custom/corp.server",
		Data: []byte("corp.test:53 {\n    forward . 192.0.2.53\n}\n"),
	}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("import: %v %s", err, diff)
	}
	if m := cf.Mounts["/etc/coredns/NodeHosts"]; m.Key != "NodeHosts" || m.Source() != "ConfigMap kube-system/coredns NodeHosts" {
		t.Errorf("NodeHosts comes from %s", m.Source())
	}
}

func TestDomainOfNodeCache(t *testing.T) {
	s := snapshot(t, gke)
	// Without kube-dns the text of the node cache is all there is.
	s.Templates = s.Templates[1:]
	f := Derive(s)
	if f.Domain != "gke.example." || f.DomainSource != "first zone in ConfigMap kube-system/node-local-dns Corefile" {
		t.Errorf("domain %q from %q", f.Domain, f.DomainSource)
	}
	if got := f.NodeLocal.Corefile.Path; got != nodeCacheBase {
		t.Errorf("the node cache reads %s", got)
	}
	if diff := cmp.Diff([]string{"corp.test."}, f.StubDomains); diff != "" {
		t.Errorf("stub domains: %s", diff)
	}
	for zone, want := range map[string]bool{"corp.test.": true, "lan.test.": true, "x.lan.test.": true, "other.test.": false} {
		if f.ServesZone(zone) != want {
			t.Errorf("ServesZone(%s) is %t", zone, !want)
		}
	}
}

func TestKubeletConfig(t *testing.T) {
	s := snapshot(t, `
kind: ConfigMap
metadata: {name: kubelet-config, namespace: kube-system}
data:
  kubelet: |
    apiVersion: kubelet.config.k8s.io/v1beta1
    clusterDNS:
    - 10.96.0.53
    clusterDomain: "real.example"
---
kind: Service
metadata: {name: main, namespace: infra}
spec: {clusterIP: 10.96.0.53, selector: {app: a}, ports: [{port: 53}]}
---
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec: {clusterIP: 10.96.0.10, selector: {app: a}, ports: [{port: 53}]}
---
kind: Deployment
metadata: {name: main, namespace: infra}
spec: {template: {metadata: {labels: {app: a}}, spec: {containers: [{image: "coredns/coredns:1.9.0"}]}}}
`)
	f := Derive(s)
	if f.Domain != "real.example." {
		t.Errorf("domain %q", f.Domain)
	}
	if f.DNS == nil || f.DNS.Workload == nil || f.DNS.Workload.Object.Namespace != "infra" {
		t.Errorf("the server behind the address of the kubelets is not found: %+v", f.DNS)
	}
}

// Both run behind one Service while a cluster moves from one to the other.
func TestTwoServersBehindOneService(t *testing.T) {
	const pod = `
kind: Pod
metadata: {name: NAME, namespace: kube-system, labels: {k8s-app: kube-dns, owner: Deployment.OWNER}}
spec: {containers: [{name: c, image: IMAGE}]}
`
	podOf := func(name, owner, image string) string {
		return strings.NewReplacer("NAME", name, "OWNER", owner, "IMAGE", image).Replace(pod)
	}
	s := snapshot(t, `
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec: {selector: {k8s-app: kube-dns}, clusterIP: 10.96.0.10, ports: [{port: 53, protocol: UDP}]}
`, podOf("a", "kube-dns", "k8s-dns-kube-dns:1.22.0"), podOf("b", "coredns", "coredns:1.9.0"), podOf("c", "coredns", "coredns:1.9.1"), podOf("d", "coredns", "coredns:1.9.1"))
	s.Pods[3].Spec = s.Pods[2].Spec // of one template, as the loader shares them
	f := Derive(s)
	if f.DNS.Implementation != CoreDNS || f.DNS.Version != "1.9.1" || f.DNS.Ready != 3 || len(f.Servers) != 2 {
		t.Errorf("DNS is %s %s with %d ready of %d servers", f.DNS.Implementation, f.DNS.Version, f.DNS.Ready, len(f.Servers))
	}
}

func TestDistribution(t *testing.T) {
	node := func(yaml string) *Snapshot { return snapshot(t, "kind: Node\n"+yaml) }
	for _, tc := range []struct {
		name string
		s    *Snapshot
	}{
		{"talos", node(`
metadata: {name: n1, annotations: {kubeadm.alpha.kubernetes.io/cri-socket: x}}
status: {nodeInfo: {osImage: "Talos (v1.7.0)"}}`)},
		{"kops", node(`metadata: {labels: {kops.k8s.io/instancegroup: nodes}}`)},
		{"microk8s", node(`metadata: {labels: {microk8s.io/cluster: "true"}}`)},
		{"k0s", node(`status: {nodeInfo: {kubeletVersion: v1.31.2+k0s}}`)},
		{"digitalocean", node(`metadata: {labels: {doks.digitalocean.com/node-id: a}}`)},
		{"kind", node(`
metadata: {annotations: {kubeadm.alpha.kubernetes.io/cri-socket: x}}
spec: {providerID: "kind://docker/kind/kind-control-plane"}`)},
		{"minikube", node(`metadata: {labels: {minikube.k8s.io/name: minikube}}`)},
		{"eks", node(`metadata: {labels: {eks.amazonaws.com/nodegroup: g}}`)},
		{"kubespray", snapshot(t, "kind: ConfigMap\nmetadata: {name: nodelocaldns, namespace: kube-system}")},
		{"openshift", &Snapshot{APIGroups: []string{"route.openshift.io"}}},
		{"eks", &Snapshot{ServerVersion: "v1.31.4-eks-2d5f260"}},
		{"", &Snapshot{ServerVersion: "v1.31.4"}},
	} {
		if got := Derive(tc.s).Distribution.Name; got != tc.name {
			t.Errorf("distribution %q, want %q", got, tc.name)
		}
	}
	for image, want := range map[string]bool{"Talos (v1.6.4)": false, "Talos (v1.7.0)": true, "Talos": false} {
		if got := Derive(node(`status: {nodeInfo: {osImage: "`+image+`"}}`)).NodeServer != ""; got != want {
			t.Errorf("%s has a DNS server on the node: %t", image, got)
		}
	}
}

func TestNetworkPlugin(t *testing.T) {
	for image, want := range map[string]string{
		"quay.io/calico/node:v3.28.0":                             "calico 3.28.0",
		"rancher/mirrored-calico-node:v3.27.0":                    "calico 3.27.0",
		"quay.io/calico/kube-controllers:v3.28.0":                 "",
		"docker.io/flannel/flannel:v0.25.4":                       "flannel 0.25.4",
		"docker.io/flannel/flannel-cni-plugin:v1.4.0":             "",
		"antrea/antrea-agent-ubuntu:v2.0.0":                       "antrea 2.0.0",
		"weaveworks/weave-kube:2.8.1":                             "weave 2.8.1",
		"cloudnativelabs/kube-router:v2.1.0":                      "kube-router 2.1.0",
		"registry.example.test/eks/amazon-k8s-cni:v1.18.0":        "aws-vpc-cni 1.18.0",
		"registry.example.test/eks/amazon-k8s-cni-init:v1.18.0":   "",
		"quay.io/cilium/operator-generic:v1.16.1":                 "",
		"ghcr.io/ovn-kubernetes/ovn-kubernetes/ovn-kube-u:master": "ovn-kubernetes",
	} {
		s := &Snapshot{Templates: []*Workload{{
			Object: finding.Object{Kind: "DaemonSet", Namespace: "kube-system", Name: "agent"},
			Spec:   &corev1.PodSpec{Containers: []corev1.Container{{Image: image}}},
		}}}
		f := Derive(s)
		if got := strings.TrimSpace(f.CNI + " " + f.CNIVersion); got != want {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}
	if f := Derive(&Snapshot{APIGroups: []string{"cilium.io"}}); f.CNI != "cilium" {
		t.Errorf("the API group cilium.io gives %q", f.CNI)
	}
}

func FuzzFacts(f *testing.F) {
	f.Add("clusterDomain: a.example\nclusterDNS:\n- 10.96.0.10\n", `{"corp.test": ["192.0.2.53"]}`, "search a.svc.x svc.x x\nnameserver 10.96.0.10\n")
	f.Add("clusterDomain:\nclusterDNS:\n", `[]`, "search . svc. .\n")
	f.Fuzz(func(t *testing.T, kubelet, stubs, resolv string) {
		s := &Snapshot{Texts: []*Text{{Kind: TextPodResolvConf, Name: "r", Data: resolv}}}
		for name, data := range map[string]map[string]string{"kubelet-config": {"kubelet": kubelet}, "kubeadm-config": {"ClusterConfiguration": kubelet}, "kube-dns": {"stubDomains": stubs}} {
			cm := &corev1.ConfigMap{Data: data}
			cm.Namespace, cm.Name = "kube-system", name
			s.ConfigMaps = append(s.ConfigMaps, cm)
		}
		facts := Derive(s)
		if d := facts.Domain; d == "" || d == "." || d != strings.ToLower(d) || !strings.HasSuffix(d, ".") {
			t.Errorf("domain %q", d)
		}
		PodConfig(s, facts, &Workload{})
	})
}
