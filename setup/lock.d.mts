/** Does `work` while no other process that names the same file does; a lock left by a killed one is taken over. */
export function withLock<T>(lockFile: string, work: () => Promise<T>, who?: string): Promise<T>;
