/** How often a test of kills goes through its rounds: some in every run, as many as are asked for by hand. */
export const killRounds = Number(process.env.BERTH_KILL_ROUNDS ?? 8);
