/**
 * Lists paths by which a caller might try to reach what no command may reach, with the expected response.
 */
const forbidden = ["file_forbidden"];
/** Files that do not exist on this machine are not reached either. */
const away = [...forbidden, "file_not_found"];
const odd = ["bad_request"];
const noFile = ["not_a_file"];
const long = "n".repeat(256);

/** `@` is a folder that belongs to root, is closed to commands, and holds the file `secret`. */
export const attacks: [string, string[]][] = [
  ["@/secret", forbidden],
  ["/../../../..@/secret", forbidden],
  ["../../../../../../../..@/secret", forbidden],
  ["./x/../../../../../..@/secret", ["file_not_found"]],
  ["folder/../../../../../..@/secret", forbidden],
  ["/workspace/../..@/secret", away],
  ["to-secret", forbidden],
  ["to-closed/secret", forbidden],
  ["to-root@/secret", forbidden],
  ["to-root/proc/self/environ", forbidden],
  ["to-proc/self/environ", forbidden],
  ["/etc/shadow", forbidden],
  ["//etc//shadow", forbidden],
  ["/./etc/./shadow", forbidden],
  ["../../../../../../../etc/shadow", forbidden],
  ["/workspace/../etc/shadow", away],
  ["/proc/self/root/etc/passwd", forbidden],
  ["/proc/self/root@/secret", forbidden],
  ["/proc/self/cwd/etc/passwd", forbidden],
  ["/proc/self/exe", forbidden],
  ["/proc/self/environ", forbidden],
  ["/proc/self/mem", forbidden],
  ["/proc/self/maps", forbidden],
  ["/proc/self/cmdline", forbidden],
  ["/proc/self/fd/0", forbidden],
  ["/proc/self/fd/3", forbidden],
  ["/proc/self/task/../environ", forbidden],
  ["/proc/thread-self/environ", forbidden],
  ["/proc/1/mem", forbidden],
  ["/proc/1/environ", forbidden],
  ["/proc/version", forbidden],
  ["/proc/kcore", away],
  ["/proc/sysrq-trigger", away],
  ["/dev/fd/0", forbidden],
  ["/dev/stdin", forbidden],
  ["/dev/mem", [...away, ...noFile]],
  ["/dev/null", noFile],
  ["/dev/zero", noFile],
  ["/dev/tty", noFile],
  ["/dev/ptmx", [...noFile, "file_not_found"]],
  ["/sys/kernel/notes", away],
  ["loop", forbidden],
  ["loop/x", forbidden],
  ["long-chain", forbidden],
  ["fifo", noFile],
  ["to-fifo", noFile],
  ["socket", noFile],
  ["folder", noFile],
  ["folder/", noFile],
  ["file/", ["not_a_folder"]],
  ["file/x", ["not_a_folder"]],
  ["file/..", ["not_a_folder"]],
  [".", noFile],
  ["/", noFile],
  ["nothing", ["file_not_found"]],
  ["%2e%2e/%2e%2e/%2e%2e/%2e%2e@/secret", ["file_not_found"]],
  ["..%2f..%2f..%2f..%2fetc/shadow", ["file_not_found"]],
  ["file\0.txt", odd],
  ["\0", odd],
  [long, odd],
  [`${"a/".repeat(2047)}a`, odd],
  [`/${"b".repeat(4096)}`, odd],
  [`${"./".repeat(2040)}file`, odd],
];

/** A command may replace and remove anything in the workspace. */
const own =
  /^(folder|file|fifo|to-[a-z]+$|to-fifo|socket|loop|long-chain|nothing|\.\/\.\/|\.$|%2e|\.\.%2f)/;

export function isForeign(path: string): boolean {
  return !own.test(path);
}
