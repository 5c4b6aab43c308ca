package search

import "sync"

// task is a piece of a walk: files of an open folder, or a folder in one.
type task struct {
	dir  *folder // held by the task
	kind taskKind
	name string // of the folder in dir; empty: dir itself
	// names are files of dir (files), or sorted paths of which the first skip
	// bytes lead to the folder (listed).
	names []string
	skip  int
	top   string // of the work tree whose paths they are (listed)
}

type taskKind uint8

const (
	files  taskKind = iota + 1 // look at names in dir
	plain                      // read the folder
	listed                     // the folder holds names and nothing else
)

// queue hands tasks to workers, the newest first: that keeps a walk deep and
// the number of open folders small. It ends when it is empty and nobody works,
// or at the first error.
type queue struct {
	mu    sync.Mutex // guards all below
	wake  *sync.Cond
	tasks []task
	busy  int
	err   error
}

func newQueue() *queue {
	q := &queue{}
	q.wake = sync.NewCond(&q.mu)
	return q
}

func (q *queue) push(ts ...task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tasks = append(q.tasks, ts...)
	for range min(len(ts), 8) {
		q.wake.Signal()
	}
}

// pop waits for a task; false means the end.
func (q *queue) pop() (task, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.tasks) == 0 && q.busy > 0 && q.err == nil {
		q.wake.Wait()
	}
	if q.err != nil || len(q.tasks) == 0 {
		return task{}, false
	}
	t := q.tasks[len(q.tasks)-1]
	q.tasks = q.tasks[:len(q.tasks)-1]
	q.busy++
	return t, true
}

// done ends the task that pop gave.
func (q *queue) done(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy--
	if err != nil && q.err == nil {
		q.err = err
	}
	if q.err != nil || q.busy == 0 && len(q.tasks) == 0 {
		q.wake.Broadcast()
	}
}

// close lets go of the tasks that were not done and returns the first error.
func (q *queue) close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range q.tasks {
		t.dir.drop()
	}
	q.tasks = nil
	return q.err
}
