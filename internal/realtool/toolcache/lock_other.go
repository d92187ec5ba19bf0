//go:build !unix

package toolcache

// lock does nothing where the standard library has no file locks: builds at the same time then repeat each other's work,
// and the last rename wins.
func lock(string) (unlock func(), err error) { return func() {}, nil }
