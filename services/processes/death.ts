/** Why a process ends: what failed first, then what failed while it was cleared away. The exit code is the first one's. */
export function death(error: unknown): { readonly message: string; readonly exitCode: number } {
  if (error instanceof SuppressedError) {
    const first = death(error.suppressed);
    return { ...first, message: `${first.message}\n(then, while clearing away: ${death(error.error).message})` };
  }
  if (!(error instanceof Error)) return { message: String(error), exitCode: 1 };
  const { message, exitCode = 1 } = error as Error & { exitCode?: number };
  return { message, exitCode };
}
