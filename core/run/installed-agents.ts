/**
 * The agents that harbor 0.25 installs into a sandbox, by harbor's names. Those that play without a model, that harbor runs itself
 * (terminus-2) or that need a desktop (computer-1) are not among them.
 */
export const INSTALLED_AGENTS = [
  'acp',
  'aider',
  'antigravity-cli',
  'antigravity-sdk',
  'claude-code',
  'cline-cli',
  'code-puppy',
  'codex',
  'copilot-cli',
  'cortex-code',
  'cursor-cli',
  'deerflow',
  'devin',
  'dspy-rlm',
  'eve',
  'fabric',
  'fx',
  'fx-dev',
  'gemini-cli',
  'goose',
  'grok-build',
  'hermes',
  'junie',
  'kimi-cli',
  'kimi-code',
  'langgraph',
  'mcode',
  'mimo',
  'mini-swe-agent',
  'muse-code',
  'nemo-agent',
  'openclaw',
  'opencode',
  'openhands',
  'openhands-sdk',
  'pi',
  'qwen-coder',
  'rovodev-cli',
  'strands',
  'swe-agent',
  'trae-agent',
  'vibe',
] as const;

export const isInstalledAgent = (name: string): boolean => (INSTALLED_AGENTS as readonly string[]).includes(name);

/** What to say of a name that is none of them. */
export function notInstalledAgent(name: string): string {
  const letters = name.toLowerCase().replaceAll(/[^a-z]/g, '');
  const near = INSTALLED_AGENTS.filter((known) => {
    const theirs = known.replaceAll('-', '');
    return letters.length > 2 && (theirs.includes(letters) || letters.includes(theirs));
  });
  const hint = near.length > 0 ? `did you mean ${near.join(' or ')}?` : `there are: ${INSTALLED_AGENTS.join(', ')}`;
  return `harbor installs no agent ${JSON.stringify(name)}; ${hint}`;
}
