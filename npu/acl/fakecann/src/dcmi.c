// libdcmi of the driver: a table of cards with one chip each.
#include "rt.h"

static bool ready;

static int32_t chip(int32_t card, int32_t device) {
	if (!ready) return -8005;
	return card >= 0 && card < fk_sw.devices && device == 0 ? 0 : -8008;
}

int32_t f_dcmi_init(void) {
	ready = fk_sw.dcmi == 0;
	return fk_sw.dcmi;
}

int32_t f_dcmi_get_card_list(void *n, void *list, int32_t room) {
	if (!ready) return -8005;
	if (!n || !list || room < fk_sw.devices) return -8001;
	*(int *)n = fk_sw.devices;
	for (int i = 0; i < fk_sw.devices; i++) ((int *)list)[i] = i;
	return 0;
}

int32_t f_dcmi_get_device_num_in_card(int32_t card, void *n) {
	if (!n) return -8001;
	*(int *)n = 1;
	return chip(card, 0);
}

int32_t f_dcmi_get_device_id_in_card(int32_t card, void *max, void *mcu, void *cpu) {
	if (!max || !mcu || !cpu) return -8001;
	*(int *)max = 1;
	*(int *)mcu = *(int *)cpu = -1;
	return chip(card, 0);
}

int32_t f_dcmi_get_device_logic_id(void *logic, int32_t card, int32_t device) {
	if (!logic) return -8001;
	*(int *)logic = card;
	return chip(card, device);
}

int32_t f_dcmi_get_card_id_device_id_from_logicid(void *card, void *device, uint32_t logic) {
	if (!card || !device) return -8001;
	*(int *)card = (int)logic;
	*(int *)device = 0;
	return chip((int32_t)logic, 0);
}

int32_t f_dcmi_get_device_phyid_from_logicid(uint32_t logic, void *phy) {
	if (!phy) return -8001;
	*(unsigned *)phy = logic;
	return chip((int32_t)logic, 0);
}

int32_t f_dcmi_get_device_chip_info(int32_t card, int32_t device, void *out) {
	if (!out) return -8001;
	int32_t code = chip(card, device);
	struct {
		char type[32], name[32], ver[32];
		unsigned cores;
	} info = {"Ascend", "", "V1", 20};
	const char *name = strncmp(fk_sw.soc_name, "Ascend", 6) == 0 ? fk_sw.soc_name + 6 : fk_sw.soc_name;
	snprintf(info.name, sizeof info.name, "%s", name);
	if (!code) memcpy(out, &info, sizeof info);
	return code;
}

int32_t f_dcmi_get_device_health(int32_t card, int32_t device, void *out) {
	if (!out) return -8001;
	*(unsigned *)out = 0;
	return chip(card, device);
}

int32_t f_dcmi_get_device_utilization_rate(int32_t card, int32_t device, int32_t type, void *out) {
	static const int known[] = {1, 2, 3, 4, 5, 6, 10, 12, 13, 14};
	if (!out) return -8001;
	int32_t code = chip(card, device);
	if (code) return code;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (known[i] == type) {
			*(unsigned *)out = (unsigned)fk_sw.util;
			return 0;
		}
	}
	return -8255;
}

int32_t f_dcmi_get_device_hbm_info(int32_t card, int32_t device, void *out) {
	if (!out) return -8001;
	int32_t code = chip(card, device);
	if (code) return code;
	struct {
		uint64_t size;
		uint32_t frequency;
		uint64_t used;
		int32_t temperature;
		uint32_t bandwidth;
	} info = {.size = (uint64_t)fk_sw.memory >> 20, .frequency = 1600, .temperature = 45, .bandwidth = 3};
	fk_acquire();
	info.used = (uint64_t)fk_memory_used(card) >> 20;
	fk_release();
	memcpy(out, &info, sizeof info);
	return 0;
}

static int32_t number(int32_t card, int32_t device, void *out, int value) {
	if (!out) return -8001;
	int32_t code = chip(card, device);
	if (!code) *(int *)out = value;
	return code;
}

int32_t f_dcmi_get_device_temperature(int32_t card, int32_t device, void *out) { return number(card, device, out, 41); }

int32_t f_dcmi_get_device_power_info(int32_t card, int32_t device, void *out) { return number(card, device, out, 913); } // 91.3 W

int32_t f_dcmi_get_device_voltage(int32_t card, int32_t device, void *out) { return number(card, device, out, 85); } // 0.85 V

int32_t f_dcmi_get_device_network_health(int32_t card, int32_t device, void *out) { return number(card, device, out, 0); }

int32_t f_dcmi_get_device_errorcode_v2(int32_t card, int32_t device, void *n, void *list, uint32_t room) {
	if (!n || !list || !room) return -8001;
	*(int *)n = 0;
	return chip(card, device);
}

int32_t f_dcmi_get_dcmi_version(void *out, int32_t room) {
	if (!out || room < 8) return -8001;
	snprintf(out, (size_t)room, "25.2.1");
	return ready ? 0 : -8005;
}
