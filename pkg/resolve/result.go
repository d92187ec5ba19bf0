package resolve

// Verdict is what can be said of a look-up when some answers are unknown.
type Verdict int

// The verdicts.
const (
	// Resolves: an address comes for certain, and it is certain from which candidate.
	Resolves Verdict = iota + 1
	// Fails: no address comes for certain.
	Fails
	// Depends: unknown candidates decide whether an address comes, or whose.
	Depends
)

// String returns the verdict as a verb phrase.
func (v Verdict) String() string {
	switch v {
	case Resolves:
		return "resolves"
	case Fails:
		return "fails"
	case Depends:
		return "depends on answers that are not known"
	}
	return "none"
}

// Outcome is the end of a look-up under one assumption about unknown answers.
type Outcome struct {
	// Assumed is the index of the step whose unknown answer is taken to lead to an address, all earlier unknown ones
	// leading to none; -1 if no unknown answer leads to one.
	Assumed int
	Status  Status
	// By is the index of the step that gives the address, or -1.
	By int
}

// Taken returns the step whose answer the resolver takes, if there is one.
func (r Result) Taken() (Step, bool) {
	if r.By < 0 || r.By >= len(r.Steps) {
		return Step{}, false
	}
	return r.Steps[r.By], true
}

// Unknown returns the indices of the steps whose answers are unknown.
func (r Result) Unknown() []int {
	var list []int
	for i, s := range r.Steps {
		if !s.Answer.Known {
			list = append(list, i)
		}
	}
	return list
}

// UnknownBefore returns the unknown steps before step i, UnknownAfter those after it.
func (r Result) UnknownBefore(i int) []int { return r.unknown(func(k int) bool { return k < i }) }

// UnknownAfter returns the unknown steps after step i.
func (r Result) UnknownAfter(i int) []int { return r.unknown(func(k int) bool { return k > i }) }

func (r Result) unknown(keep func(int) bool) []int {
	var list []int
	for _, i := range r.Unknown() {
		if keep(i) {
			list = append(list, i)
		}
	}
	return list
}

// Verdict says what is certain.
func (r Result) Verdict() Verdict {
	switch {
	case len(r.Unknown()) > 0:
		return Depends
	case r.Status.OK():
		return Resolves
	}
	return Fails
}

// Outcomes returns how the look-up ends under each assumption: first that no unknown answer leads to an address, then
// for each unknown step that this one does and the earlier ones do not. Without unknown steps there is one outcome.
//
// "No address" is NXDOMAIN for a name of which nothing is known, and the answer that the model gives otherwise. A
// caller who wants another assumption (an empty answer, a failure) wraps the callback of Walk.
func (r Result) Outcomes() []Outcome {
	list := []Outcome{{Assumed: -1, Status: r.Status, By: r.By}}
	for _, i := range r.Unknown() {
		o := Outcome{Assumed: i, By: i}
		var action Action
		if action, o.Status = r.Resolver.judge(r.Steps[i].Answer.resolving()); action != Take {
			o.By = -1
		}
		list = append(list, o)
	}
	return list
}

// CanResolve tells whether the look-up gives an address under at least one assumption.
func (r Result) CanResolve() bool {
	for _, o := range r.Outcomes() {
		if o.Status.OK() {
			return true
		}
	}
	return false
}

// MustResolve tells whether the look-up gives an address under every assumption, be it not always the same.
func (r Result) MustResolve() bool {
	for _, o := range r.Outcomes() {
		if !o.Status.OK() {
			return false
		}
	}
	return true
}
