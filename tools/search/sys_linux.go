package search

import "golang.org/x/sys/unix"

// local are the file systems that change a folder's times with every name that
// comes or goes and show it at once: those of this machine. Linux has no
// constant for ZFS.
var localKinds = [...]int64{
	unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC,
	unix.OVERLAYFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.RAMFS_MAGIC, 0x2fc12fc1,
}

// timesAreKept says whether the times of the folders beside fd are believed.
func timesAreKept(fd int) bool {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return false
	}
	for _, kind := range localKinds {
		if int64(st.Type) == kind { //nolint:unconvert // an int32 on some machines
			return true
		}
	}
	return false
}
