// Package release holds no code: its tests compare the files that a release is made from, and run the completion script
// under a real kubectl.
package release
