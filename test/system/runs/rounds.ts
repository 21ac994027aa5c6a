/** The rounds of a test of kills: a few in every run, more when asked for. */
export const killRounds = Number(process.env.BERTH_KILL_ROUNDS ?? 4);
