import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { isBucket, isFolderOrBucket, type StoreLocation, storeLocation } from './blob-store.ts';
import { PROJECT_ROOT } from './environment.ts';
import { mayBePassed } from './runner-variables.ts';
import { ambiguousSource, isTokenizerSource, type TokenizerSource, tokenizerSources } from './tokenizers.ts';
import { ALL_ROLES, ROLE_SYNTAX, rolesIn } from './worker-roles.ts';

export const SETTINGS_FILE = 'temporal.config.json';

const port = z.int().min(1).max(65_535);
const slots = z.int().min(1);
const queue = z.string().min(1);
const hasCredentials = (url: string) => URL.canParse(url) && new URL(url).username + new URL(url).password !== '';
/** An address that agents are told: to be read as it stands, with nothing secret in it. */
export const publicUrl = z
  .url({
    protocol: /^https?$/,
    // What may hold a password is not said again.
    error: ({ input }) =>
      `${`${input}`.includes('@') ? 'it' : JSON.stringify(input)} is no http or https URL; give one like https://gateway.example.org/worker-7`,
  })
  .refine((url) => !hasCredentials(url), 'must not hold a user or password: agents have a key for each trial')
  .refine((url) => !/[?#]/.test(url), 'must have no query and no fragment');
const roles = z.string().refine((text) => rolesIn(text) !== null, { error: `must be ${ROLE_SYNTAX}` });

/** The app settings as written. Every key is optional and every unknown one an error; defaults are for one machine. */
export const AppSettingsSchema = z
  .strictObject({
    $schema: z.string().optional().describe('The JSON Schema of this file, for editors.'),
    taskQueues: z
      .strictObject({
        control: queue.default('stillroom').describe('Workflows and their small activities; `temporal workflow start` names this one.'),
        rollouts: queue.default('stillroom-rollouts').describe('Trials: harbor and the gateway.'),
        training: queue.default('stillroom-training').describe('Calls to the training service.'),
      })
      .prefault({})
      .describe('Temporal task queues, one for each worker role.'),
    workers: z
      .strictObject({
        controlSlots: slots.default(20).describe('Control activities that one worker runs at once.'),
        rolloutSlots: slots.default(8).describe('Trials that one worker runs at once.'),
        trainingSlots: slots.default(8).describe('Training and scoring calls that one worker has open at once.'),
        maxCachedWorkflows: slots.default(100).describe('Workflows that one worker keeps in memory.'),
        drainSeconds: z
          .number()
          .min(0)
          .default(10)
          .describe('How long a worker that is told to end lets what it runs come to its own end, before other workers get it.'),
        memoryReserveMb: z
          .int()
          .min(0)
          .default(512)
          .describe(
            'Memory, in MB, that a worker leaves for everything else: a trial waits until what it is likely to need is available beyond that.',
          ),
        metricsHost: z.string().min(1).default('127.0.0.1').describe('Address on which a worker serves its Prometheus metrics.'),
        metricsPort: port
          .optional()
          .describe('Port of the metrics; without one there are none. The second worker of `stillroom up` has the next port, and so on.'),
        processes: z
          .array(roles)
          .min(1)
          .default([ALL_ROLES])
          .describe(`The worker processes of \`stillroom up\`, each by its roles: ${ROLE_SYNTAX}.`),
      })
      .prefault({})
      .describe('How much one worker process takes on.'),
    harbor: z
      .strictObject({
        passEnv: z
          .array(
            z
              .string()
              .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of an environment variable')
              .refine(mayBePassed, "is the worker's alone and never reaches a runner"),
          )
          .default([])
          .describe(
            "More variables of a rollout worker's environment that its harbor runner gets, e.g. those that the `env` of a job template names; their values count as secret. Those that harbor's own environments read are passed without being named.",
          ),
      })
      .prefault({})
      .describe('The harbor runner of each rollout worker.'),
    blobStore: z
      .string()
      .min(1)
      .default('.stillroom/blobs')
      .refine(isFolderOrBucket, 'must be a folder, or s3://BUCKET or s3://BUCKET/PREFIX (parts of letters, digits and . _ : @ -)')
      .describe(
        'What runs must not lose: tokens, transcripts, rows. A folder, relative to the project root, or `s3://bucket/prefix` for several machines.',
      ),
    blobStoreEndpoint: z
      .url({ protocol: /^https?$/ })
      .refine((url) => !hasCredentials(url), 'must not hold a user or password: credentials come from the AWS_… variables')
      .optional()
      .describe("Address of an S3-speaking server other than AWS's, for a `blobStore` on S3. Buckets are then part of the path."),
    blobStoreRegion: z.string().min(1).optional().describe('Region of a `blobStore` on S3. Default: AWS_REGION of the environment.'),
    runRoot: z.string().min(1).default('.stillroom/runs').describe('Where run directories are written. Relative to the project root.'),
    gateway: z
      .strictObject({
        host: z.string().min(1).default('127.0.0.1').describe('Address that the gateway of a rollout worker listens on.'),
        port: z.int().min(0).max(65_535).default(0).describe('Its port; 0 lets the system choose.'),
        publicUrl: publicUrl
          .optional()
          .describe(
            'Where agents reach it, if not at host and port: for agents inside remote sandboxes. Each rollout worker needs its own; STILLROOM_GATEWAY_URL or `worker --gateway-url` names it for one.',
          ),
      })
      .prefault({})
      .describe("The model endpoint that agents talk to, on each rollout worker's own machine."),
    tokenizers: z
      .record(
        z.string().min(1),
        z
          .string()
          .refine(isTokenizerSource, 'must be a folder (./… or /…), or a repository of the model hub (org/name or org/name@revision)'),
      )
      .default({})
      .describe(
        "Where tokenizer and chat template of a model come from, by the service's name for it: a folder, relative to the project root, or the repository of the model hub that has them. Default: the repository of that name.",
      ),
    servingEndpoint: z
      .url()
      .optional()
      .describe(
        'Where agents reach promoted weights, OpenAI-style; written into handoff.toml. Default: `/oai/api/v1` of the training service.',
      ),
    trainer: z
      .strictObject({ port: port.default(8377).describe('Port of the embedded trainer.') })
      .prefault({})
      .describe('The embedded Tinker-compatible service of `stillroom up` and the demo.'),
    temporal: z
      .strictObject({
        port: port.default(7233).describe('gRPC port of the dev server.'),
        uiPort: port.default(8233).describe('Port of its Web UI.'),
        dbFile: z.string().min(1).default('.stillroom/temporal.db').describe('Its database. Relative to the project root.'),
      })
      .prefault({})
      .describe(
        'The Temporal dev server of `stillroom up` and the demo. Clients find a server through the `temporal` CLI profile and variables.',
      ),
  })
  .superRefine(({ blobStore, blobStoreEndpoint, blobStoreRegion }, context) => {
    if (isBucket(blobStore)) return;
    for (const [key, value] of Object.entries({ blobStoreEndpoint, blobStoreRegion }))
      if (value !== undefined)
        context.addIssue({ code: 'custom', path: [key], message: 'is only for a blobStore of the form s3://BUCKET' });
  })
  .describe('Stillroom app settings');

type Written = z.output<typeof AppSettingsSchema>;

/** The settings as used: total, and with absolute paths. */
export type AppSettings = Omit<Written, '$schema' | 'blobStore' | 'blobStoreEndpoint' | 'blobStoreRegion' | 'tokenizers'> & {
  readonly blobStore: StoreLocation;
  readonly tokenizers: Readonly<Record<string, TokenizerSource>>;
};

/** The settings file says something it may not say. */
export class BadSettings extends Error {
  readonly exitCode = 2;
  override readonly name = 'BadSettings';
}

/** Reads `temporal.config.json` of the project; without one, all defaults. Fails with BadSettings that names every bad field. */
export function readAppSettings(root: string = PROJECT_ROOT): AppSettings {
  const file = path.join(root, SETTINGS_FILE);
  const parsed = AppSettingsSchema.safeParse(existsSync(file) ? parseJson(readFileSync(file, 'utf8')) : {});
  if (!parsed.success) throw new BadSettings(`${SETTINGS_FILE}:\n${z.prettifyError(parsed.error)}`);
  for (const [model, text] of Object.entries(parsed.data.tokenizers)) {
    const ambiguous = ambiguousSource(root, text);
    if (ambiguous !== null) throw new BadSettings(`${SETTINGS_FILE}: tokenizers, ${model}: ${ambiguous}`);
  }
  const { $schema: _, blobStore, blobStoreEndpoint, blobStoreRegion, ...settings } = parsed.data;
  return {
    ...settings,
    blobStore: storeLocation(root, { blobStore, blobStoreEndpoint, blobStoreRegion }),
    tokenizers: tokenizerSources(root, settings.tokenizers),
    runRoot: path.resolve(root, settings.runRoot),
    temporal: { ...settings.temporal, dbFile: path.resolve(root, settings.temporal.dbFile) },
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new BadSettings(`${SETTINGS_FILE} is not JSON: ${(error as Error).message}`);
  }
}

/** The JSON Schema that lies beside the settings file. */
export const appSettingsJsonSchema = () => z.toJSONSchema(AppSettingsSchema, { io: 'input' });
