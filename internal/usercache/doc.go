// Package usercache finds a folder where the program may keep files for the user.
//
//	for _, p := range usercache.Places("data") {
//		dir, err := p.Make() // ~/.cache/gotrain/data
//		if err == nil {
//			break
//		}
//	}
//
// The folder is in the user's cache, $XDG_CACHE_HOME or ~/.cache. If that is not writable (no home directory, a read-only one, or one owned by
// another user), it is in gotrain-UID below the directory for temporary files. Both must be owned by the user and must not be writable by others:
// otherwise another user could replace files between a check and their use.
package usercache
