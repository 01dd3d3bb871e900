//go:build cgo && linux

#include "dcmi.h"
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

enum { NO_SYMBOL = -99998, HBM = 64 };

// The structure of memory: u64 size, u32 frequency, u64 used, i32 temperature, u32 load; with room for a newer one.
typedef struct {
    uint64_t size;
    uint32_t frequency;
    uint64_t used;
    int32_t temperature;
    uint32_t load;
    char room[HBM];
} hbm;

typedef int (*f_init)(void);
typedef int (*f_cards)(int *, int *, int);
typedef int (*f_number)(int, int *);
typedef int (*f_value)(int, int, void *);
typedef int (*f_rate)(int, int, int, unsigned *);
typedef int (*f_logic)(int *, int, int);
typedef int (*f_physical)(unsigned, unsigned *);

static int value(void *h, const char *name, int card, int chip) {
    f_value f = (f_value)dlsym(h, name);
    int v = -1;
    return f && f(card, chip, &v) == 0 ? v : -1;
}

static void look(void *h, gt_chip *c) {
    c->physical = c->load = -1;
    c->memory = c->used = -1;
    f_logic logic = (f_logic)dlsym(h, "dcmi_get_device_logic_id");
    f_physical physical = (f_physical)dlsym(h, "dcmi_get_device_phyid_from_logicid");
    int l = -1;
    unsigned p = 0, percent = 0;
    if (logic && physical && logic(&l, c->card, c->chip) == 0 && l >= 0 && physical((unsigned)l, &p) == 0) c->physical = (int)p;
    c->health = value(h, "dcmi_get_device_health", c->card, c->chip);
    c->temperature = value(h, "dcmi_get_device_temperature", c->card, c->chip);
    c->power = value(h, "dcmi_get_device_power_info", c->card, c->chip);
    f_rate rate = (f_rate)dlsym(h, "dcmi_get_device_utilization_rate");
    const int kinds[] = {13, 2}; // the whole chip; its AI cores
    for (int i = 0; rate && i < 2 && c->load < 0; i++)
        if (rate(c->card, c->chip, kinds[i], &percent) == 0) c->load = (int)percent;
    f_value memory = (f_value)dlsym(h, "dcmi_get_device_hbm_info");
    hbm m;
    memset(&m, 0, sizeof m);
    if (memory && memory(c->card, c->chip, &m) == 0) c->memory = (int64_t)m.size, c->used = (int64_t)m.used;
}

int gt_dcmi(void *h, gt_chip *chips, int *n, const char **call) {
    f_init init = (f_init)dlsym(h, *call = "dcmi_init");
    int code = init ? init() : NO_SYMBOL;
    if (code) return code;
    f_cards cards = (f_cards)dlsym(h, *call = "dcmi_get_card_list");
    int list[64], count = 0;
    code = cards ? cards(&count, list, 64) : NO_SYMBOL;
    if (code) return code;
    f_number number = (f_number)dlsym(h, *call = "dcmi_get_device_num_in_card");
    if (!number) return NO_SYMBOL;
    *n = 0;
    for (int i = 0; i < count && i < 64; i++) {
        int k = 0;
        if ((code = number(list[i], &k))) return code;
        for (int j = 0; j < k && *n < GT_DCMI_CHIPS; j++) {
            gt_chip *c = &chips[(*n)++];
            c->card = list[i], c->chip = j;
            look(h, c);
        }
    }
    return 0;
}
