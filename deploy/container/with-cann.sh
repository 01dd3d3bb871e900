#!/bin/bash
# with-cann COMMAND...: runs a command in CANN's environment, which the dynamic linker must see at the start of a process. The driver's libraries come from
# the host; without them gotrain says so, and "gotrain doctor" says what is missing.
for env in /usr/local/Ascend/cann/set_env.sh /usr/local/Ascend/ascend-toolkit/set_env.sh; do
	if [ -r "$env" ]; then
		# shellcheck disable=SC1090 # CANN's own
		. "$env"
		break
	fi
done
driver=/usr/local/Ascend/driver/lib64
export LD_LIBRARY_PATH="$driver:$driver/common:$driver/driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec "$@"
