// Package fakemodel is the model that tests talk to: the script engine of
// providers/rehearsal, over real HTTP, with a judge that looks at every request.
//
// [New] serves a script for one test and reports through it whatever a real
// server could stumble over or a person would mind: a call without exactly one
// result, a tool that the role may not have, a history whose beginning has
// changed, a planted secret, a picture for a model without eyes, a step of the
// script that was never asked for. [Checker] is the judge alone.
//
// Invariants, as absences: no request goes unjudged; nothing is judged between
// the arrival of a request and its time stamp; no goroutine outlives the test.
//
//	m := fakemodel.New(t, fakemodel.Config{Key: "canary-1", Canary: []string{"canary-1"}, Script: `
//		call read_file {"path": "a.go"}
//		gate reading
//		expect result contains "package a"
//		say Done.`})
//	m.Install(home) // writes providers.json
//	...
//	m.Reached("reading") // the model has asked for the file
//	m.Release("reading")
//	second := m.Wait(2)[1]
package fakemodel
