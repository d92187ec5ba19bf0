package resolve

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// Limits on what is read of a resolv.conf, so that hostile input costs little. No resolver uses as much.
const (
	maxConfigSize = 1 << 20
	maxSearch     = 256
	maxOptions    = 256
	maxProblems   = 100
)

// Defaults and caps that the three libraries share (resolv.conf(5)).
const (
	defaultNDots    = 1
	maxNDots        = 15
	defaultTimeout  = 5
	defaultAttempts = 2
	maxNameservers  = 3
)

// muslLine is the longest line that musl reads, without its line feed: resolvconf.c has a buffer of 256 octets and
// passes over a line that does not fit.
const muslLine = 254

// Config is what a resolv.conf says, or what a kubelet would write into one.
type Config struct {
	// Nameservers are addresses in the order of the file, all of them. Resolvers use the first three.
	Nameservers []string
	// Search is the search list: absolute names, "." for the root.
	Search []string
	// Overlong tells that musl passes over the line that Search comes from because of its length; Earlier is the list
	// that it has then, from a line before.
	Overlong bool
	Earlier  []string
	// SearchUnknown tells that the list has more domains than Search names (those of a node whose resolv.conf is not
	// known, if it has any), SearchUnknownAt how many entries of Search stand in front of them.
	SearchUnknown   bool
	SearchUnknownAt int
	// NameserversUnknown tells that the nameservers are those of a node whose resolv.conf is not known.
	NameserversUnknown bool
	// OptionsUnknown tells that the options, ndots among them, may be others: those of such a node.
	OptionsUnknown bool
	// NDots is the number of dots from which on a name is tried as it was typed first. The libraries cap it at 15.
	NDots int
	// Timeout is in seconds, for one attempt.
	Timeout  int
	Attempts int
	// Options are all options as they are written, in order, with later ones of the same name in place of earlier
	// ones.
	Options []string
	// Hosts are names that the hosts file answers, as in hostAliases of a pod. localhost is always among them.
	Hosts []string
}

// NewConfig returns the configuration of an empty resolv.conf.
func NewConfig() Config {
	return Config{NDots: defaultNDots, Timeout: defaultTimeout, Attempts: defaultAttempts}
}

// Problem is something in a resolv.conf that resolvers ignore, cut short or read differently.
type Problem struct {
	Position finding.Position
	// Text is a clause without final dot.
	Text string
}

// Error returns "file:line:col: text".
func (p Problem) Error() string { return p.Position.String() + ": " + p.Text }

// ParseConfig reads a resolv.conf as stub resolvers do, after resolv.conf(5): of several "search" and "domain" lines the
// last wins, options are merged, lines that start with "#" or ";" and unknown words are passed over. The name is used
// in positions. Nothing is an error: resolvers take what they understand, and the rest comes back as problems.
func ParseConfig(name string, src []byte) (Config, []Problem) {
	p := configParser{name: name, cfg: NewConfig()}
	p.parse(src, p.libraryLine)
	if len(p.cfg.Nameservers) > maxNameservers {
		p.problem(p.nameserverLine, 1, fmt.Sprintf("%d nameservers, of which resolvers use the first %d", len(p.cfg.Nameservers), maxNameservers))
	}
	return p.cfg, p.problems
}

// ParseNodeConfig reads a resolv.conf as a kubelet does before it builds those of pods (parseResolvConf in
// pkg/kubelet/network/dns/dns.go of Kubernetes 1.34): "domain" lines are passed over, of several "search" lines the last
// wins even if it is empty, the domain "." is dropped (kubelet 1.25.0 alone passed it on, kubernetes#112157).
func ParseNodeConfig(name string, src []byte) (Config, []Problem) {
	p := configParser{name: name, cfg: NewConfig()}
	p.parse(src, p.kubeletLine)
	return p.cfg, p.problems
}

type configParser struct {
	name     string
	cfg      Config
	problems []Problem

	searchLine     int    // line of the search list in force, 0 if none
	searchWord     string // "search" or "domain"
	nameserverLine int    // line of the last nameserver
}

func (p *configParser) problem(line, col int, text string) {
	if len(p.problems) < maxProblems {
		p.problems = append(p.problems, Problem{finding.Position{Source: p.name, Line: line, Col: col}, text})
	}
}

// field is a word of a line and the column of its first byte, from 1.
type field struct {
	text string
	col  int
}

func fields(line string) []field {
	var list []field
	for i := 0; i < len(line); {
		if isBlank(line[i]) {
			i++
			continue
		}
		start := i
		for i < len(line) && !isBlank(line[i]) {
			i++
		}
		list = append(list, field{line[start:i], start + 1})
	}
	return list
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f' }

func (p *configParser) parse(src []byte, take func(n int, line string, words []field)) {
	if len(src) > maxConfigSize {
		p.problem(0, 0, fmt.Sprintf("%d octets, of which the first %d are read", len(src), maxConfigSize))
		src = src[:maxConfigSize]
	}
	n := 0
	for line := range strings.Lines(string(src)) {
		n++
		line = strings.TrimSuffix(line, "\n")
		if words := fields(line); len(words) > 0 {
			take(n, line, words)
		}
	}
}

// libraryLine reads one line as glibc does, and says where the others read it differently.
func (p *configParser) libraryLine(n int, line string, words []field) {
	if line[0] == '#' || line[0] == ';' {
		return
	}
	key := words[0]
	if key.col > 1 {
		// glibc and musl compare from the first column on; Go reads words.
		p.problem(n, key.col, "the line starts with a blank, so glibc and musl pass over it and Go does not")
		return
	}
	switch key.text {
	case "nameserver":
		p.nameserver(n, words)
	case "search":
		p.search(n, words, len(line))
	case "domain":
		p.search(n, words[:min(len(words), 2)], len(line))
	case "options":
		for _, w := range words[1:] {
			p.option(n, w)
		}
	case "sortlist", "lookup", "family":
		// Words of some resolvers that change no name.
	default:
		p.problem(n, key.col, "unknown word "+strconv.Quote(clip(key.text)))
	}
}

func (p *configParser) kubeletLine(n int, _ string, words []field) {
	if strings.HasPrefix(words[0].text, "#") {
		return
	}
	switch words[0].text {
	case "nameserver":
		p.nameserver(n, words)
	case "search":
		p.cfg.Search = nil
		for _, w := range words[1:] {
			if w.text != "." {
				p.domain(n, w)
			}
		}
	case "options":
		for _, w := range words[1:] {
			p.option(n, w)
		}
	}
}

func (p *configParser) nameserver(n int, words []field) {
	if len(words) < 2 {
		p.problem(n, words[0].col, "nameserver without an address")
		return
	}
	addr := words[1]
	if _, err := netip.ParseAddr(addr.text); err != nil {
		p.problem(n, addr.col, "nameserver "+strconv.Quote(clip(addr.text))+" is no address, so it is passed over")
		return
	}
	if len(p.cfg.Nameservers) < maxOptions {
		p.cfg.Nameservers = append(p.cfg.Nameservers, addr.text)
	}
	p.nameserverLine = n
}

func (p *configParser) search(n int, words []field, length int) {
	word := words[0].text
	if len(words) < 2 {
		// glibc keeps the list that it has; musl and Go take the empty one, for "search".
		p.problem(n, words[0].col, word+" without a domain")
		return
	}
	if p.searchLine > 0 {
		p.problem(n, words[0].col, fmt.Sprintf("%s replaces the %s list of line %d: the last one wins", word, p.searchWord, p.searchLine))
	}
	if length > muslLine {
		p.problem(n, words[0].col, fmt.Sprintf("line of %d octets, which musl passes over: it reads at most %d", length, muslLine))
	}
	if !p.cfg.Overlong {
		p.cfg.Earlier = p.cfg.Search
	}
	p.cfg.Overlong = length > muslLine
	p.searchLine, p.searchWord, p.cfg.Search = n, word, nil
	for _, w := range words[1:] {
		if w.text == "." {
			p.problem(n, w.col, `search domain ".": musl before 1.2.4 fails for every name that reaches it`)
		}
		p.domain(n, w)
	}
	if !p.cfg.Overlong {
		p.cfg.Earlier = nil
	}
}

// domain adds a word to the search list.
func (p *configParser) domain(n int, w field) {
	name, err := Absolute(w.text)
	switch {
	case err != nil:
		p.problem(n, w.col, "search domain: "+clip(err.Error()))
	case len(p.cfg.Search) == maxSearch:
		p.problem(n, w.col, fmt.Sprintf("more than %d search domains", maxSearch))
	case len(p.cfg.Search) < maxSearch:
		p.cfg.Search = append(p.cfg.Search, name)
	}
}

func (p *configParser) option(n int, w field) {
	if len(p.cfg.Options) >= maxOptions {
		return
	}
	if text := p.cfg.setOption(w.text); text != "" {
		p.problem(n, w.col, text)
	}
}

// setOption puts an option in place of one of the same name and applies it. It returns what is wrong with it, if
// anything.
func (c *Config) setOption(option string) string {
	key, value, _ := strings.Cut(option, ":")
	i := slices.IndexFunc(c.Options, func(o string) bool { k, _, _ := strings.Cut(o, ":"); return k == key })
	if i >= 0 {
		c.Options = slices.Concat(c.Options[:i], []string{option}, c.Options[i+1:])
	} else {
		c.Options = append(slices.Clip(c.Options), option)
	}
	var target *int
	low, high := 1, 30
	switch key {
	case "ndots":
		target, low, high = &c.NDots, 0, maxNDots
	case "timeout":
		target = &c.Timeout
	case "attempts":
		target, high = &c.Attempts, 5
	default:
		return ""
	}
	v, err := strconv.ParseUint(value, 10, 31)
	if err != nil {
		return fmt.Sprintf("option %s is no number, and resolvers differ in what they make of it", strconv.Quote(clip(option)))
	}
	*target = min(max(int(v), low), high)
	if int(v) > high {
		return fmt.Sprintf("option %s is over the limit, %d is used", strconv.Quote(clip(option)), high)
	}
	return ""
}

// searchOf returns the search list that r uses of the configuration, and the index in it in front of which the
// unknown domains stand, -1 if there are none.
func (c Config) searchOf(r Resolver) (list []string, unseenAt int) {
	unseenAt = -1
	if c.SearchUnknown {
		unseenAt = min(max(c.SearchUnknownAt, 0), len(c.Search))
	}
	list = c.Search
	switch {
	case r.Library == Musl && c.Overlong:
		return c.Earlier, -1
	case r.Library == Musl && lineLength(list) > muslLine:
		return nil, -1
	case r.Library == Glibc && r.Version.Before(2, 26, 0):
		// Before 2.26 the list ended at six domains or 256 octets (resolv.conf(5), MAXDNSRCH).
		list = list[:min(len(list), 6)]
		for len(list) > 0 && lineLength(list)-len("search ") > 255 {
			list = list[:len(list)-1]
		}
		if unseenAt >= len(list) && len(list) < len(c.Search) {
			unseenAt = -1
		}
	}
	return list, unseenAt
}

// lineLength is the length of the line that the search list takes in a file, written without final dots as kubelets
// write it.
func lineLength(search []string) int {
	if len(search) == 0 {
		return 0
	}
	n := len("search")
	for _, d := range search {
		n += 1 + max(len(d)-1, 1)
	}
	return n
}

// clip shortens a text from a file for a message.
func clip(s string) string {
	const limit = 80
	if len(s) > limit {
		return strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}
