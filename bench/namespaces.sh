#!/bin/sh
# Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0
#
# Network namespaces as a small cluster on this machine: PREFIX0, PREFIX1, … behind a bridge, with addresses 10.9.0.1, 10.9.0.2, … on interfaces v0, v1, …
# With a rate, each of them sends at most that fast (tbf).
#
#   sh bench/namespaces.sh up hn 4            four, as fast as veth and bridge are
#   sh bench/namespaces.sh rate hn 4 1gbit    limit them; "rate hn 4 none" lifts the limit
#   sh bench/namespaces.sh down hn 4          remove them; what runs in them goes on without a network
#
# Only for root. hcclrun starts ranks in them with --rsh 'ip netns exec' -H hn0:1,hn1:1.
set -eu
say() { echo "namespaces.sh: $*" >&2; exit 1; }
[ $# -ge 3 ] || say "usage: namespaces.sh up|rate|down PREFIX NUMBER [RATE]"
what=$1 prefix=$2 n=$3
case $prefix in *[!a-z]* | '') say "the prefix $prefix is not made of small letters" ;; esac
case $n in *[!0-9]* | '' | 0) say "$n is no number of namespaces" ;; esac
[ "$(id -u)" = 0 ] || say "only root can make network namespaces"
bridge=${prefix}br

each() { # each COMMAND…: with $i from 0
    i=0
    while [ $i -lt "$n" ]; do
        "$@"
        i=$((i + 1))
    done
}
remove() { ip netns del "$prefix$i" 2>/dev/null || true; }
down() {
    each remove
    ip netns del "$bridge" 2>/dev/null || true
}
add() {
    ip netns add "$prefix$i"
    ip -n "$prefix$i" link add "v$i" type veth peer name "p$i" netns "$bridge"
    ip -n "$bridge" link set "p$i" master br0 up
    ip -n "$prefix$i" addr add "10.9.0.$((i + 1))/24" dev "v$i"
    ip -n "$prefix$i" link set "v$i" up
    ip -n "$prefix$i" link set lo up
}
limit() {
    if [ "$rate" = none ]; then
        tc -n "$prefix$i" qdisc del dev "v$i" root 2>/dev/null || true
    else
        tc -n "$prefix$i" qdisc replace dev "v$i" root tbf rate "$rate" burst 128k latency 20ms
    fi
}
case $what in
up)
    ip netns list | grep -q "^$bridge\b" && say "$bridge exists already; remove it with: namespaces.sh down $prefix $n"
    trap 'down' EXIT
    ip netns add "$bridge"
    ip -n "$bridge" link add br0 type bridge
    ip -n "$bridge" link set br0 up
    each add
    trap - EXIT
    if [ $# -gt 3 ]; then
        rate=$4
        each limit
    fi
    ;;
rate)
    [ $# -gt 3 ] || say "which rate? 1gbit, 10gbit, none"
    rate=$4
    each limit
    ;;
down) down ;;
*) say "$what: up, rate or down" ;;
esac
