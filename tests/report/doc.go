// Command report reads the output of `go test -json` on its standard input,
// keeps it in a file for later readers, and prints what a person wants to see:
// one line per package as go test itself writes it, the whole output of what
// failed, and the sums.
//
// It fails when a test failed, when no test ran, when a package began and never
// ended, and when a test was skipped: a test that did not run proves nothing.
//
//	go test -json ./... | go run ./tests/report -out tests/out/test.json
package main
