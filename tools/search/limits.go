package search

import "time"

// Limits bound a search and what it says. DefaultLimits has the values of the
// design; a zero field takes its default.
type Limits struct {
	PerFile   int           // matching lines shown of one file
	Total     int           // matching lines shown in all
	LineBytes int           // shown of one line
	TextBytes int           // of a whole result
	Entries   int           // files and folders that a walk meets
	FileBytes int64         // larger files are not searched, and counted
	Bytes     int64         // read by one search
	Time      time.Duration // of one search
	Depth     int           // of folders below the one that is searched
}

// DefaultLimits returns the limits that hold where nothing else was set.
func DefaultLimits() Limits {
	return Limits{
		PerFile: 50, Total: 200,
		LineBytes: 400,
		TextBytes: 50 << 10,
		Entries:   200_000,
		FileBytes: 64 << 20,
		Bytes:     4 << 30,
		Time:      20 * time.Second,
		Depth:     256, // each level of a walk in progress holds a descriptor
	}
}

func (l Limits) orDefault() Limits {
	d := DefaultLimits()
	if l.PerFile <= 0 {
		l.PerFile = d.PerFile
	}
	if l.Total <= 0 {
		l.Total = d.Total
	}
	if l.LineBytes <= 0 {
		l.LineBytes = d.LineBytes
	}
	if l.TextBytes <= 0 {
		l.TextBytes = d.TextBytes
	}
	if l.Entries <= 0 {
		l.Entries = d.Entries
	}
	if l.FileBytes <= 0 {
		l.FileBytes = d.FileBytes
	}
	if l.Bytes <= 0 {
		l.Bytes = d.Bytes
	}
	if l.Time <= 0 {
		l.Time = d.Time
	}
	if l.Depth <= 0 {
		l.Depth = d.Depth
	}
	return l
}
