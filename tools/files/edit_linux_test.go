package files

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/lakecode/lakecode/tools"
)

// covers TOOL-13 partly
func TestWritersStayInsideAndRespectWhatIsReadOnly(t *testing.T) {
	d := open(t, map[string]string{"real": "text\n", "ro": "text\n", "mnt/x": ""})
	out := t.TempDir()
	must(t, os.WriteFile(out+"/f", []byte("text\n"), 0o644))
	must(t, os.Symlink(out+"/f", d.abs("out")))
	must(t, os.Symlink(out, d.abs("outdir")))
	must(t, os.Symlink("/dev/zero", d.abs("zero")))
	must(t, os.Symlink("real", d.abs("in")))
	must(t, os.Chmod(d.abs("ro"), 0o444))
	must(t, syscall.Mount("tmpfs", d.abs("mnt"), "tmpfs", 0, "size=64k"))
	t.Cleanup(func() { must(t, syscall.Unmount(d.abs("mnt"), syscall.MNT_DETACH)) })
	must(t, os.WriteFile(d.abs("mnt/f"), []byte("text\n"), 0o644))

	for _, path := range []string{"out", "outdir/f", "outdir/new", "zero", "../f", out + "/f"} {
		d.bad(tools.OutsideRoot, "write_file", args{"path": path, "content": "x"}, "outside the workspace")
		d.bad(tools.OutsideRoot, "edit_file", args{"path": path, "edits": edits("text", "x")}, "outside the workspace")
		d.bad(tools.OutsideRoot, "read_file", args{"path": path}, "outside the workspace")
	}
	d.ok("edit_file", args{"path": "in", "edits": edits("text", "new")}, "Edited real")
	d.check("real", "new\n")
	if to, err := os.Readlink(d.abs("in")); err != nil || to != "real" {
		t.Errorf("the link: %s, %v", to, err)
	}
	d.bad(tools.NotAllowed, "edit_file", args{"path": "ro", "edits": edits("text", "x")}, "ro is read-only (mode 0444)", "Nothing was written")
	d.check("ro", "text\n")
	big := strings.Repeat("x", 200<<10)
	d.bad(tools.Other, "edit_file", args{"path": "mnt/f", "edits": edits("text", big)}, "no space is left on the disk", "Nothing was written")
	d.bad(tools.Other, "write_file", args{"path": "mnt/dir/g", "content": big}, "no space is left on the disk", "Nothing was written")
	must(t, syscall.Mount("", d.abs("mnt"), "", syscall.MS_REMOUNT|syscall.MS_RDONLY, "size=64k"))
	d.bad(tools.NotAllowed, "edit_file", args{"path": "mnt/f", "edits": edits("text", "x")}, "file system is read-only", "Nothing was written")
	d.bad(tools.NotAllowed, "write_file", args{"path": "mnt/g", "content": "x"}, "file system is read-only", "Nothing was written")
	d.check("mnt/f", "text\n")
	if entries, err := os.ReadDir(d.abs("mnt")); err != nil || len(entries) != 1 {
		t.Errorf("left in the folder: %v, %v", entries, err)
	}
}

// covers TOOL-13 partly
func TestPatchIsUndoneWhenItsLastFileCannotBeWritten(t *testing.T) {
	files := map[string]string{"a": "1\n", "b": "2\n", "c": "3\n"}
	d := open(t, files)
	must(t, os.Mkdir(d.abs("mnt"), 0o755))
	must(t, syscall.Mount("tmpfs", d.abs("mnt"), "tmpfs", 0, "size=64k"))
	t.Cleanup(func() { must(t, syscall.Unmount(d.abs("mnt"), syscall.MNT_DETACH)) })
	out := t.TempDir()
	must(t, os.Symlink(out, d.abs("outdir")))
	d.ok("read_file", args{"path": "c"})
	const body = "*** Update File: a\n@@\n-1\n+one\n*** Update File: b\n*** Move to: new/b\n*** Delete File: c\n*** Add File: "
	d.bad(tools.Other, "apply_patch", wrap(body+"mnt/big\n+"+strings.Repeat("x", 200<<10)), "no space is left on the disk", "Nothing was written.")
	d.bad(tools.OutsideRoot, "apply_patch", wrap(body+"outdir/x\n+x"), "outside the workspace", "Nothing was written.")
	must(t, os.Remove(d.abs("outdir")))
	d.checkTree(files)
	if _, err := os.Stat(d.abs("new")); err == nil {
		t.Error("a new folder is left")
	}
	d.ok("apply_patch", wrap(body+"mnt/small\n+x"), "Patched 4 files: +2 -2 lines.")
	d.checkTree(map[string]string{"a": "one\n", "new/b": "2\n", "mnt/small": "x\n"})
}
