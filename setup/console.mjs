const startedAt = Date.now();

/** Set-up speaks on stderr, so that what the command itself prints stays clean. */
export const say = (text) => process.stderr.write(text);

const seconds = (sinceMs) => `${((Date.now() - sinceMs) / 1000).toFixed(0)} s`;

/** One line for one step: `text … 12 s`. The line is begun before the work, for whoever is waiting. */
export async function step(text, work) {
  const since = Date.now();
  say(`set-up: ${text} … `);
  try {
    const result = await work();
    say(`${seconds(since)}\n`);
    return result;
  } catch (error) {
    say('failed\n');
    throw error;
  }
}

export const saySetupDone = () => say(`set-up: done in ${seconds(startedAt)}; the next time there is nothing to do\n`);
