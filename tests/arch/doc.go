// Package arch holds the rules of the house as tests: which package may import
// which ([Table], read from layers.txt), and what source files may not do
// ([Rules]). A violation is one sentence that names the place and the way out.
//
// Invariants, as absences: no package is outside the table; no third-party
// module is without an owner; nothing is excused in code, every exception is a
// line of layers.txt.
package arch
