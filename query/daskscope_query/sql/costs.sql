-- reads: clusters_daily, catalog
-- What clusters cost over days, by the keys in `by` (user, tag, day, week, instance_type, cluster, kind), the dearest
-- first, within days and weeks in their order. `catalog` (given) tells what a cluster cost in all, and by which machines:
-- that is spread over its days by the thread time of each. One that it lacks is estimated at `thread_hour` a thread.
-- Of a cluster that was heard of on other days than `first_day` to `last_day` too, all of its thread time is what the
-- registry counted, or its machines where that is a run of the plugin among several.
WITH listed AS (
    SELECT
        *,
        CASE
            WHEN CAST(first_received_at AT TIME ZONE 'UTC' AS DATE) < $first_day::DATE
                OR CAST(last_received_at AT TIME ZONE 'UTC' AS DATE) > $last_day::DATE
                THEN list_sum([coalesce(m.thread_us, 0)::HUGEINT FOR m IN machines])
        END AS machines_us,
        greatest(thread_us, CASE WHEN machines_us > 1.05 * thread_us THEN machines_us END) AS least_us
    FROM catalog
),
days AS (
    SELECT
        d.day,
        d.cluster,
        d.cluster_id,
        coalesce(c."name", d."name") AS "name",
        coalesce(d."user", c."user") AS "user",
        c.kind,
        CASE WHEN $tag::VARCHAR IS NOT NULL THEN c.tags[$tag] END AS tag,
        d.thread_us,
        d.thread_us / greatest(c.least_us, sum(d.thread_us) OVER (PARTITION BY d.cluster), 1) AS part,
        least(greatest(coalesce(d.action_us['compute'], 0), 0) / greatest(d.thread_us, 1), 1) AS used,
        d.failed_us / greatest(d.thread_us, 1) AS failed,
        CASE
            WHEN c.dollars IS NOT NULL THEN c.dollars
            WHEN d.thread_us > 0 THEN greatest(c.least_us, sum(d.thread_us) OVER (PARTITION BY d.cluster)) / 3.6e9 * $thread_hour
        END AS dollars,
        c.dollars IS NOT NULL AND c.quality = 'measured' AS measured,
        CASE WHEN len(c.machines) > 0 THEN c.machines ELSE [NULL] END AS machines
    FROM clusters_daily d
    LEFT JOIN listed c USING (cluster)
    WHERE $user::VARCHAR IS NULL OR coalesce(d."user", c."user") = $user
),
shared AS (
    -- Failed tasks ran: of the time that was not idle, what is left for them.
    SELECT
        * EXCLUDE (failed, machines),
        greatest(1 - used - coalesce(failed, 0), 0) AS idle,
        CASE WHEN failed IS NOT NULL THEN least(failed, 1 - used) END AS failed,
        len(machines) AS n_kinds,
        list_sum([coalesce(m.dollars, 0) FOR m IN machines]) AS all_dollars,
        list_sum([coalesce(m.thread_us, 0)::HUGEINT FOR m IN machines]) AS all_thread_us,
        unnest(machines) AS machine
    FROM days
),
weighed AS (
    SELECT
        *,
        machine.instance_type AS instance_type,
        CASE WHEN all_dollars > 0 THEN machine.dollars / all_dollars ELSE 1 / n_kinds END AS of_dollars,
        CASE WHEN all_thread_us > 0 THEN machine.thread_us / all_thread_us ELSE 1 / n_kinds END AS of_threads
    FROM shared
),
keyed AS (
    SELECT
        CASE WHEN list_contains($by::VARCHAR[], 'day') THEN day END AS day,
        CASE WHEN list_contains($by::VARCHAR[], 'week') THEN date_trunc('week', day)::DATE END AS week,
        CASE WHEN list_contains($by::VARCHAR[], 'user') THEN "user" END AS "user",
        CASE WHEN list_contains($by::VARCHAR[], 'tag') THEN tag END AS tag,
        CASE WHEN list_contains($by::VARCHAR[], 'instance_type') THEN instance_type END AS instance_type,
        CASE WHEN list_contains($by::VARCHAR[], 'kind') THEN kind END AS kind,
        CASE WHEN list_contains($by::VARCHAR[], 'cluster') THEN cluster_id END AS cluster_id,
        CASE WHEN list_contains($by::VARCHAR[], 'cluster') THEN "name" END AS "name",
        cluster,
        thread_us * of_threads AS thread_us,
        CASE WHEN machine.n_machines > 0 THEN machine.machine_us * part END AS machine_us,
        dollars * part * of_dollars AS dollars,
        idle,
        failed,
        measured
    FROM weighed
),
summed AS (
    SELECT
        day, week, "user", tag, instance_type, kind, cluster_id, "name",
        count(DISTINCT cluster) AS n_clusters,
        sum(thread_us) / 3.6e9 AS thread_hours,
        sum(machine_us) / 3.6e9 AS machine_hours,
        sum(dollars) AS dollars,
        sum(dollars * idle) AS idle,
        sum(dollars * failed) AS failed,
        coalesce(sum(dollars) FILTER (measured), 0) AS measured_dollars
    FROM keyed
    GROUP BY ALL
)
SELECT
    *,
    sum(dollars) OVER () AS all_dollars,
    sum(idle) OVER () AS all_idle,
    sum(failed) OVER () AS all_failed,
    sum(thread_hours) OVER () AS all_thread_hours,
    sum(machine_hours) OVER () AS all_machine_hours
FROM summed
ORDER BY day, week, dollars DESC NULLS LAST, "user", tag, instance_type, kind, cluster_id
LIMIT $limit OFFSET $offset
