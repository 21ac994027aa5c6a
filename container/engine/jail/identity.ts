/**
 * The user that commands run as inside a jail, and its folders. The engine decides which user of the machine this
 * maps to.
 */
export const jailUser = { name: "berth", uid: 10001, gid: 10001 } as const;

export const jailHome = "/home/berth";
/** Clients that were written for other sandboxes expect the home of their user here. */
export const jailHomeOfClients = "/home/user";
export const jailWorkspace = "/workspace";
/** Where Debian lists the packages of /usr; other systems keep their list below it. */
export const packagesFolder = "/var/lib/dpkg";

/** What the agent writes for programs of the sandbox, such as its metadata. */
export const agentFolder = "/run/berth";
export const jailHostName = "sandbox";
