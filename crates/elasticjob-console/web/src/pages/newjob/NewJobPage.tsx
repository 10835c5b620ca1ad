import { Anchor, Breadcrumbs, Grid, Select, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { Link, useNavigate } from "react-router";

import { useAction } from "../../api/action";
import { queryString, request } from "../../api/client";
import { jobPath, queryKeys } from "../../api/queries";
import type { Properties, StoredConfig } from "../../api/types";
import { useRegistry, useRegistryLink } from "../../app/registry";
import { Card } from "../../components/Card";
import { PageHeader } from "../../components/PageHeader";
import { EmptyState } from "../../components/states";
import { useText } from "../../i18n";
import { ConfigForm } from "../job/config/ConfigForm";

/** Initial properties by job type. */
const BASES: Record<string, Properties> = {
  SCRIPT: { props: { "script.command.line": "" } },
  HTTP: { props: { "http.uri": "", "http.method": "GET" } },
  RUST: { props: { "elasticjob.handler": "" } },
};

export function NewJobPage() {
  const t = useText();
  const to = useRegistryLink();
  const navigate = useNavigate();
  const registry = useRegistry();
  const [name, setName] = useState("");
  const [kind, setKind] = useState("SCRIPT");
  const [job] = useDebouncedValue(name.trim(), 300);
  const handler = kind === "RUST" ? undefined : kind;
  const store = useAction<Properties, StoredConfig>({
    send: (properties) =>
      request("PUT", `${jobPath(registry, job)}/config${queryString({ handler })}`, properties, {
        "If-None-Match": "*",
      }),
    successMessage: () => t.newJob.stored(job),
    invalidates: [queryKeys.jobs(registry), queryKeys.overview(registry)],
  });
  return (
    <>
      <Breadcrumbs mb={6} fz="sm">
        <Anchor component={Link} to={to("jobs")} fz="sm">
          {t.nav.jobs}
        </Anchor>
        <span>{t.newJob.title}</span>
      </Breadcrumbs>
      <PageHeader title={t.newJob.title} about={t.newJob.about} />
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
              label={t.newJob.type}
              description={t.newJob.typeAbout}
              allowDeselect={false}
              data={Object.keys(BASES).map((value) => ({
                value,
                label: t.newJob.types[value] ?? value,
              }))}
              value={kind}
              onChange={(value) => setKind(value ?? "SCRIPT")}
            />
          </Grid.Col>
        </Grid>
      </Card>
      {job === "" ? (
        <EmptyState icon="jobs" title={t.newJob.nameFirst} />
      ) : (
        <div style={{ marginTop: "var(--mantine-spacing-md)" }}>
          <ConfigForm
            key={kind}
            job={job}
            base={BASES[kind] ?? {}}
            handler={handler}
            store={store}
            onStored={() => void navigate(to("jobs", job))}
          />
        </div>
      )}
    </>
  );
}
