import { parseRunConfig, stringifyRunConfig } from '../../../core/config/parse.ts';
import { isKnownRenderer } from '../../../core/config/renderers.ts';
import type { RunConfig } from '../../../core/config/schema.ts';
import type { FamilyAdapter, Finding } from '../judge.ts';
import { difference } from '../same.ts';

type Expected = { ok: true; config: Record<string, unknown> } | { ok: false; errors: { field: string; kind: string }[] };

/** Without the keys only we have, and with the recorder's name for the default W&B project. */
function theirs({ checkpoints: _, ...config }: RunConfig, toml: string) {
  const { overlap_steps: _overlap, ...train } = config.train;
  const { confidence: _confidence, ...gate } = config.gate;
  const { max_usd_per_trial: _perTrial, ...budget } = config.budget;
  const { same_cause_failures: _sameCause, keep_files: _keepFiles, ...harbor } = config.harbor;
  const project = /^project\s*=/m.test(toml) ? config.wandb.project : 'wmo-distill';
  return { ...config, harbor, train, gate, budget, wandb: { ...config.wandb, project } };
}

function check({ toml }: { toml: string }, expected: Expected, family: { extras: Readonly<Record<string, unknown>> }): Finding {
  const parsed = parseRunConfig(toml, 'run.toml');
  const { probe } = family.extras.renderer_names as { probe: Record<string, boolean> };
  const names = difference(probe, Object.fromEntries(Object.keys(probe).map((name) => [name, isKnownRenderer(name)])));
  if (names) return { difference: `renderer names: ${names}` };
  if (!parsed.ok) {
    const set = (errors: readonly { field: string; kind: string }[]) =>
      [...new Set(errors.map((error) => `${error.field} ${error.kind}`))].sort();
    const wanted = expected.ok ? 'accepted' : set(expected.errors);
    const found = difference(wanted, set(parsed.errors));
    return found === null ? null : { difference: found, refused: true };
  }
  const again = parseRunConfig(stringifyRunConfig(parsed.config), 'run.toml');
  const roundtrip = again.ok && difference(parsed.config, again.config) === null;
  const found = difference(expected, { ok: true, config: theirs(parsed.config, toml), snapshot_roundtrip_equal: roundtrip });
  return found === null ? null : { difference: found };
}

export const config: FamilyAdapter = { family: 'config', kinds: { '': check } };
