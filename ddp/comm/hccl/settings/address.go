package settings

// address tells HCCL by which interface the hosts find each other, unless the user did: the one by which the ranks met.
func (r *reader) address() {
	if !r.Address.IsValid() || r.Env["HCCL_IF_IP"] != "" || r.Env["HCCL_SOCKET_IFNAME"] != "" {
		return
	}
	ip := r.Address.WithZone("").Unmap()
	const by = byDefault + "; ranks of other hosts reach this one there"
	r.set("HCCL_IF_IP", ip.String())
	r.line("HCCL_IF_IP", ip.String(), by)
	if ip.Is6() && r.Env["HCCL_SOCKET_FAMILY"] == "" {
		r.set("HCCL_SOCKET_FAMILY", "AF_INET6")
		r.line("HCCL_SOCKET_FAMILY", "AF_INET6", by)
	}
}
