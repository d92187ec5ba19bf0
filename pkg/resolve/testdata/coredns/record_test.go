// Records what the real kubernetes plugin answers for the cluster of cluster.json. It is no part of our tests: copy it
// and cluster.json into plugin/kubernetes of the source of a CoreDNS release and run
//
//	go test ./plugin/kubernetes -run TestRecord -count=1 -args VERSION.txt
//
// with -ldflags=-checklinkname=0 where an old release does not link under the Go of the day.
//
// Each line of the result is a variant, a name, the reply for A, the reply for AAAA and the addresses.
package kubernetes

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/kubernetes/object"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
	api "k8s.io/api/core/v1"
)

type recordPort struct{ Name, Protocol string }

type recordCluster struct {
	Domain     string
	Namespaces []string
	Pods       []struct{ Namespace, Address string }
	Outside    map[string][]string
	Services   []struct {
		Namespace, Name, Kind, Target string
		Addresses                     []string
		Ports                         []recordPort
		Endpoints                     []struct {
			Address, Hostname, Pod string
			Ready                  bool
		}
	}
	Variants []string
	Names    []string
}

// recordConn is the cache of the plugin, filled from the file. The embedded one of the plugin's own tests has the
// methods that differ between releases.
type recordConn struct {
	APIConnServeTest
	c    *recordCluster
	noEP bool
}

func (r recordConn) ServiceList() (list []*object.Service) {
	for _, s := range r.c.Services {
		o := &object.Service{Name: s.Name, Namespace: s.Namespace, Index: object.ServiceKey(s.Name, s.Namespace), Type: api.ServiceTypeClusterIP, ClusterIPs: s.Addresses}
		switch s.Kind {
		case "ExternalName":
			o.Type, o.ExternalName, o.ClusterIPs = api.ServiceTypeExternalName, s.Target, []string{""}
		case "Headless":
			o.ClusterIPs = []string{api.ClusterIPNone}
		}
		for _, p := range s.Ports {
			o.Ports = append(o.Ports, api.ServicePort{Name: p.Name, Protocol: api.Protocol(p.Protocol), Port: 80})
		}
		if len(o.Ports) == 0 {
			o.Ports = []api.ServicePort{{Port: -1}}
		}
		list = append(list, o)
	}
	return list
}

func (r recordConn) SvcIndex(key string) (list []*object.Service) {
	for _, s := range r.ServiceList() {
		if s.Index == key {
			list = append(list, s)
		}
	}
	return list
}

func (r recordConn) EndpointsList() (list []*object.Endpoints) {
	if r.noEP {
		return nil
	}
	for _, s := range r.c.Services {
		sub := object.EndpointSubset{}
		for _, e := range s.Endpoints {
			if e.Ready {
				sub.Addresses = append(sub.Addresses, object.EndpointAddress{IP: e.Address, Hostname: e.Hostname, TargetRefName: e.Pod})
			}
		}
		for _, p := range s.Ports {
			sub.Ports = append(sub.Ports, object.EndpointPort{Name: p.Name, Protocol: p.Protocol, Port: 80})
		}
		if len(sub.Ports) == 0 {
			sub.Ports = []object.EndpointPort{{Port: -1}}
		}
		list = append(list, &object.Endpoints{Name: s.Name, Namespace: s.Namespace, Index: object.EndpointsKey(s.Name, s.Namespace), Subsets: []object.EndpointSubset{sub}})
	}
	return list
}

func (r recordConn) EpIndex(key string) (list []*object.Endpoints) {
	for _, e := range r.EndpointsList() {
		if e.Index == key {
			list = append(list, e)
		}
	}
	return list
}

func (r recordConn) EpIndexReverse(string) []*object.Endpoints { return nil }

func (r recordConn) PodIndex(ip string) (list []*object.Pod) {
	for _, p := range r.c.Pods {
		if p.Address != ip {
			continue
		}
		o := &object.Pod{Namespace: p.Namespace, Name: "p"}
		v := reflect.ValueOf(o).Elem()
		if f := v.FieldByName("PodIP"); f.IsValid() {
			f.SetString(ip)
		} else {
			v.FieldByName("PodIPs").Set(reflect.ValueOf([]string{ip}))
		}
		list = append(list, o)
	}
	return list
}

func (r recordConn) GetNamespaceByName(name string) (*object.Namespace, error) {
	for _, n := range r.c.Namespaces {
		if n == name {
			return &object.Namespace{Name: n}, nil
		}
	}
	return nil, fmt.Errorf("no namespace %s", name)
}

// recordUpstream answers like a resolver behind the forward plugin.
type recordUpstream struct{ c *recordCluster }

func (u recordUpstream) Lookup(_ context.Context, state request.Request, name string, typ uint16) (*dns.Msg, error) {
	m := new(dns.Msg)
	m.SetQuestion(name, typ)
	addrs, ok := u.c.Outside[strings.ToLower(name)]
	if !ok {
		m.Rcode = dns.RcodeNameError
	}
	for _, a := range addrs {
		if strings.Contains(a, ":") == (typ == dns.TypeAAAA) {
			rr, err := dns.NewRR(fmt.Sprintf("%s 5 IN %s %s", name, dns.TypeToString[typ], a))
			if err != nil {
				return nil, err
			}
			m.Answer = append(m.Answer, rr)
		}
	}
	return m, nil
}

func TestRecord(t *testing.T) {
	if flag.NArg() != 1 {
		t.Skip("no file to write")
	}
	src, err := os.ReadFile("cluster.json")
	if err != nil {
		t.Fatal(err)
	}
	var c recordCluster
	if err := json.Unmarshal(src, &c); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(flag.Arg(0))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	defer w.Flush()
	for _, variant := range c.Variants {
		conn := recordConn{c: &c}
		k := New([]string{c.Domain + "."})
		k.Next = test.NextHandler(dns.RcodeSuccess, nil)
		// Before 1.9.0 the field is a concrete type, so that nothing outside the zone is found.
		if f := reflect.ValueOf(k).Elem().FieldByName("Upstream"); f.Kind() == reflect.Interface {
			f.Set(reflect.ValueOf(recordUpstream{&c}))
		}
		k.podMode = podModeInsecure
		words := strings.Fields(variant)
		switch words[0] {
		case "pods":
			k.podMode = words[1]
		case "ignore":
			k.opts.ignoreEmptyService = true
		case "noendpoints":
			conn.noEP = true
		case "namespaces":
			for _, n := range words[1:] {
				k.Namespaces[n] = struct{}{}
			}
		case "endpoint_pod_names":
			k.endpointNameMode = true
		}
		k.APIConn = conn
		for _, name := range c.Names {
			full := strings.TrimPrefix(name+"."+c.Domain+".", ".")
			if full == "ns.dns."+c.Domain+"." {
				continue // its addresses are those of the machine
			}
			var replies, addresses []string
			for _, typ := range []uint16{dns.TypeA, dns.TypeAAAA} {
				m := new(dns.Msg)
				m.SetQuestion(full, typ)
				rec := dnstest.NewRecorder(&test.ResponseWriter{})
				if _, err := k.ServeDNS(context.Background(), rec, m); err != nil {
					t.Fatalf("%s: %v", full, err)
				}
				reply := "NODATA"
				for _, rr := range rec.Msg.Answer {
					switch rr := rr.(type) {
					case *dns.CNAME:
						if reply == "NODATA" {
							reply = "CNAME"
						}
					case *dns.A:
						reply = "address"
						addresses = append(addresses, rr.A.String())
					case *dns.AAAA:
						reply = "address"
						addresses = append(addresses, rr.AAAA.String())
					}
				}
				if rec.Msg.Rcode != dns.RcodeSuccess {
					reply = dns.RcodeToString[rec.Msg.Rcode]
				}
				replies = append(replies, reply)
			}
			fmt.Fprintln(w, strings.TrimRight(strings.Join([]string{variant, full, replies[0], replies[1], strings.Join(addresses, " ")}, "\t"), "\t"))
		}
	}
}
