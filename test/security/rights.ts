/**
 * A Python script that tries each way to more rights, with arguments that would work for a privileged process, and prints
 * the error of each.
 */

/** The errors of a refusal: no right, a file that is not writable or missing, no such call in this kernel. */
export const refusals = ["EPERM", "EACCES", "ENOSYS"];
export const fileRefusals = [...refusals, "EROFS", "ENOENT"];
/** Where Berth is not root, there is no root inside to become. */
export const refusalsOf: Record<string, string[]> = {
  setuid: [...refusals, "EINVAL"],
  setgid: [...refusals, "EINVAL"],
};

/** What root inside may do: to its own files, mounts and users, and with namespaces that hold no rights over the machine. */
export const rootMay = [
  ...["setuid", "setgid", "setgroups", "mount", "umount", "bind", "chroot"],
  ...["setns mnt", "open_tree", "fsopen", "unshare 20000", "unshare 20000000"],
  ...["unshare 40000000", "unshare 4000000"],
];

/** Prints a map from each try to the name of its error, or `could`. `paths`: whether settings are tried too. */
export function tryRights({ settings }: { settings: boolean }): string {
  return `
import ctypes, errno, json, os, platform, struct, tempfile
libc = ctypes.CDLL(None, use_errno=True)
results = {}
def tries(name, call):
    ctypes.set_errno(0)
    try: failed = call() == -1
    except OSError as e: results[name] = errno.errorcode[e.errno]
    else: results[name] = errno.errorcode.get(ctypes.get_errno(), "no error") if failed else "could"
def system(number, *args):
    return libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
folder = tempfile.mkdtemp(dir="/tmp").encode()
own = {kind: os.open("/proc/self/ns/" + kind, os.O_RDONLY) for kind in ("uts", "net", "mnt")}
tries("setuid", lambda: os.setuid(0)); tries("setgid", lambda: os.setgid(0)); tries("setgroups", lambda: os.setgroups([0]))
tries("mknod", lambda: os.mknod(folder.decode() + "/mem", 0o20666, os.makedev(1, 1)))
tries("sethostname", lambda: libc.sethostname(b"a", 1))
tries("mount", lambda: libc.mount(b"none", folder, b"tmpfs", 0, None))
tries("umount", lambda: libc.umount2(folder, 2))
tries("bind", lambda: libc.mount(b"/tmp", folder, None, 4096, None))
for kind, fd in own.items(): tries("setns " + kind, lambda: libc.setns(fd, 0))
for flag in (0x10000000, 0x00020000, 0x20000000, 0x40000000, 0x04000000): tries("unshare %x" % flag, lambda: libc.unshare(flag))
if platform.machine() == "x86_64":
    tries("pivot_root", lambda: system(155, b"/tmp", b"/tmp"))
    tries("open_tree", lambda: system(428, -100, b"/tmp", 1))
    tries("fsopen", lambda: system(430, b"tmpfs", 0))
    # These look at the right before anything else: what they are given would do nothing to a process that has it.
    tries("kexec_load", lambda: system(246, 0, 0, 0, 0)); tries("init_module", lambda: system(175, 0, 0, b""))
    tries("reboot", lambda: system(169, 0, 0, 0, 0)); tries("acct", lambda: system(163, 0))
    tries("settimeofday", lambda: system(164, 0, 0)); tries("swapon", lambda: system(167, b"/tmp/none", 0))
    tries("iopl", lambda: system(172, 3))
    array = ctypes.create_string_buffer(struct.pack("<IIII", 2, 4, 8, 1), 128)
    tries("bpf", lambda: system(321, 0, array, 128))
    clock = ctypes.create_string_buffer(struct.pack("<IIQ", 1, 128, 0), 128)
    tries("perf_event_open", lambda: system(298, clock, -1, 0, -1, 0))
    tries("userfaultfd", lambda: system(323, 0)); tries("keyctl", lambda: system(250, 0, -3, 1))
    tries("io_uring_setup", lambda: system(425, 1, ctypes.create_string_buffer(256)))
    handle = ctypes.create_string_buffer(struct.pack("<Ii", 128, 0), 136)
    mount = ctypes.c_int()
    name = lambda: system(303, -100, b"/dev/shm", handle, ctypes.byref(mount), 0)
    tries("open_by_handle_at", lambda: system(304, os.open("/dev/shm", os.O_RDONLY), handle, 0) if name() == 0 else "no handle")
if ${settings ? "True" : "False"}:
    for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/kernel/modprobe", "/proc/sys/vm/drop_caches", "/proc/sys/net/ipv4/ip_forward"):
        tries(path, lambda: open(path, "w").write("1"))
# The last: it makes paths lead elsewhere for a process that may.
tries("chroot", lambda: os.chroot("/tmp"))
print(json.dumps(results))
`;
}
