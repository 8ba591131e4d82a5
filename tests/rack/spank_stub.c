/* Takes the options that a GB300 cluster has and this one lacks, so that real command lines run:
 * pyxis' container options are accepted and ignored; --segment, where Slurm has none of its own
 * (before 24.05: compiled with OWN_SEGMENT), is checked for a whole number and not enforced. */
#include <ctype.h>
#include <stdlib.h>
#include <slurm/spank.h>

SPANK_PLUGIN(rack_options, 1)

static int accept_any(int id, const char *value, int remote)
{
    (void) id;
    (void) value;
    (void) remote;
    return 0;
}

#define VALUE(option) { (char *) option, (char *) "[value]", (char *) "stub: accepted", 1, 0, accept_any }
#define FLAG(option) { (char *) option, NULL, (char *) "stub: accepted", 0, 0, accept_any }

static struct spank_option options[] = {
    VALUE("container-image"),
    VALUE("container-mounts"),
    VALUE("container-name"),
    VALUE("container-workdir"),
    FLAG("container-writable"),
    FLAG("container-remap-root"),
    FLAG("container-mount-home"),
    FLAG("no-container-mount-home"),
    FLAG("no-container-entrypoint"),
    FLAG("no-container-remap-root"),
};

#ifdef OWN_SEGMENT
static int take_segment(int id, const char *value, int remote)
{
    const char *digit = value;
    (void) id;
    while (digit && isdigit((unsigned char) *digit))
        digit++;
    if (remote || (digit && digit != value && !*digit && atoi(value) > 0))
        return 0;
    slurm_error("Invalid --segment value: %s", value ? value : "");
    return -1;
}

static struct spank_option segment = {
    (char *) "segment", (char *) "[nodes]", (char *) "stub: checked, not enforced", 1, 0, take_segment
};
#endif

int slurm_spank_init(spank_t spank, int argc, char **argv)
{
    size_t at;
    (void) argc;
    (void) argv;
    for (at = 0; at < sizeof(options) / sizeof(*options); at++)
        spank_option_register(spank, &options[at]);
#ifdef OWN_SEGMENT
    spank_option_register(spank, &segment);
#endif
    return 0;
}
