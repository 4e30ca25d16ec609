/** The help of `sluice doctor agents`. */
export const agentsHelp = `Usage: sluice doctor agents [AGENT...] [--url URL] [--key KEY | --key-env NAME] [--model MODEL]
                            [--path FOLDERS] [--timeout SECONDS] [--json]

Runs each installed agent once against the gateway. An agent gets a temporary home folder, so that your settings are neither read nor
changed. Prints whether each agent answers, streams, uses tools and lists models, with the reason if it does not answer. Exits with
code 1 if an agent does not answer. Each agent sends about two requests. For --url, --key, --key-env and --model see "sluice connect".

AGENT      Agents to run. Default: all that are installed.
--path     Folders with the programs, in the form of $PATH. Default: $PATH.
--timeout  Maximum time for each agent, in seconds. Default: 120.
--json     Prints the table as JSON.`;
