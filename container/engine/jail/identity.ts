/**
 * Owns who commands are inside a room: one user, its numbers, its folders.
 * Does not own which user of the machine stands behind it: the engine decides that when it launches.
 */
export const roomUser = { name: "berth", uid: 10001, gid: 10001 } as const;

export const roomHome = "/home/berth";
export const roomWorkspace = "/workspace";
export const roomHostName = "sandbox";
