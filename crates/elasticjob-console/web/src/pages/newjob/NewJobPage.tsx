import { Anchor, Breadcrumbs, Grid, Select, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { Link, useNavigate } from "react-router";

import { useAct } from "../../api/act";
import { ask, query } from "../../api/client";
import { atJob, keys } from "../../api/queries";
import type { Properties, Stored } from "../../api/types";
import { useRegistry, useTo } from "../../app/registry";
import { useText } from "../../i18n";
import { Card } from "../../parts/Card";
import { PageHead } from "../../parts/PageHead";
import { Empty } from "../../parts/states";
import { ConfigForm } from "../job/config/ConfigForm";

/** What a job of each kind starts from. */
const BASES: Record<string, Properties> = {
  SCRIPT: { props: { "script.command.line": "" } },
  HTTP: { props: { "http.uri": "", "http.method": "GET" } },
  RUST: { props: { "elasticjob.handler": "" } },
};

export function NewJobPage() {
  const t = useText();
  const to = useTo();
  const navigate = useNavigate();
  const registry = useRegistry();
  const [name, setName] = useState("");
  const [kind, setKind] = useState("SCRIPT");
  const [job] = useDebouncedValue(name.trim(), 300);
  const handler = kind === "RUST" ? undefined : kind;
  const store = useAct<Properties, Stored>({
    run: (properties) =>
      ask("PUT", `${atJob(registry, job)}/config${query({ handler })}`, properties, {
        "If-None-Match": "*",
      }),
    done: () => t.newJob.stored(job),
    touches: [keys.jobs(registry), keys.overview(registry)],
    after: () => void navigate(to("jobs", job)),
  });
  return (
    <>
      <Breadcrumbs mb={6} fz="sm">
        <Anchor component={Link} to={to("jobs")} fz="sm">
          {t.nav.jobs}
        </Anchor>
        <span>{t.newJob.title}</span>
      </Breadcrumbs>
      <PageHead title={t.newJob.title} about={t.newJob.about} />
      <Card>
        <Grid>
          <Grid.Col span={{ base: 12, sm: 6 }}>
            <TextInput
              label={t.newJob.name}
              description={t.newJob.nameAbout}
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
            />
          </Grid.Col>
          <Grid.Col span={{ base: 12, sm: 6 }}>
            <Select
              label={t.newJob.kind}
              description={t.newJob.kindAbout}
              allowDeselect={false}
              data={Object.keys(BASES).map((value) => ({
                value,
                label: t.newJob.kinds[value] ?? value,
              }))}
              value={kind}
              onChange={(value) => setKind(value ?? "SCRIPT")}
            />
          </Grid.Col>
        </Grid>
      </Card>
      {job === "" ? (
        <Empty icon="jobs" title={t.newJob.first} />
      ) : (
        <div style={{ marginTop: "var(--mantine-spacing-md)" }}>
          <ConfigForm
            key={kind}
            job={job}
            base={BASES[kind] ?? {}}
            handler={handler}
            store={store}
          />
        </div>
      )}
    </>
  );
}
