import { packageFolder } from '../config/installation/home.ts';
import { maskSecrets } from '../log.ts';

/** Limits of the report about a failed reload. */
const mostProblems = 50;
const longestProblem = 1_000;

/**
 * Problems as they may be shown to whoever reads the log or the dashboard: no folders of this machine, no secrets, no end. `root` is the
 * folder of the config.
 */
export function redactProblems(problems: readonly string[], root = ''): string[] {
  const words = problems.slice(0, mostProblems).map((problem) => {
    const near = root === '' ? problem : problem.replaceAll(`${root}/`, '');
    return maskSecrets(near.replaceAll(packageFolder, '')).slice(0, longestProblem);
  });
  const more = problems.length - words.length;
  return more > 0 ? [...words, `And ${more} more.`] : words;
}
