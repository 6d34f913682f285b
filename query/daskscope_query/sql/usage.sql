-- reads: members, fine_metrics
-- For each of `clusters`: its machines by kind, and worker time in tasks that failed. `heard` (given) tells until when a
-- cluster is known to have been there. A machine is a host and its instance type: workers that share one count once,
-- whatever else each of them told of it, and its scheduler is on it. A scheduler's machine counts if it told its instance type: only then it is one that somebody pays for.
WITH ends AS (
    -- Whoever did not leave was there until the plugin's next run, of which all who are there stand anew.
    SELECT
        m.cluster,
        m.boot,
        coalesce(lead(min(m."at")) OVER (PARTITION BY m.cluster ORDER BY m.boot), any_value(h.until_at)) AS until_at
    FROM members m
    JOIN heard h USING (cluster)
    GROUP BY m.cluster, m.boot
),
present AS (
    SELECT
        m.cluster,
        coalesce(nullif(m.host, ''), m.id) AS host,
        nullif(m.instance_type, '') AS told,
        CASE WHEN told IS NOT NULL THEN nullif(m.provider, '') END AS provider,
        CASE WHEN told IS NOT NULL THEN nullif(m.region, '') END AS region,
        CASE WHEN told IS NOT NULL THEN nullif(m.lifecycle, '') END AS lifecycle,
        CASE WHEN told IS NOT NULL THEN nullif(m.cores, 0) END AS cores,
        CASE WHEN told IS NOT NULL THEN nullif(m.memory_bytes, 0) END AS memory_bytes,
        m.role,
        m.joined_at,
        greatest(least(coalesce(m.left_at, e.until_at), e.until_at), m.joined_at) AS gone_at,
        m.n_threads,
        m.memory_limit_bytes
    FROM members m
    JOIN ends e USING (cluster, boot)
    WHERE m.role = 'worker' OR (m.role = 'scheduler' AND m.instance_type <> '')
),
typed AS (
    SELECT *, coalesce(told, max(told) OVER (PARTITION BY cluster, host)) AS instance_type FROM present
),
placed AS (
    -- A worker that told nothing is on the machine that another process of its host told of. The next machine of an
    -- address may be a spot one, so what of that was told stays; a type's cores and memory are those of the machine.
    SELECT
        cluster,
        host,
        role,
        joined_at,
        gone_at,
        n_threads,
        memory_limit_bytes,
        instance_type,
        CASE WHEN instance_type IS NOT NULL THEN {
            'provider': coalesce(provider, max(provider) OVER machine),
            'region': coalesce(region, max(region) OVER machine),
            'instance_type': instance_type,
            'lifecycle': coalesce(lifecycle, max(lifecycle) OVER machine),
            'cores': max(cores) OVER machine,
            'memory_bytes': max(memory_bytes) OVER machine
        } END AS kind,
        epoch_ms(gone_at)::HUGEINT - epoch_ms(joined_at) AS stayed_ms
    FROM typed
    WINDOW machine AS (PARTITION BY cluster, host, instance_type)
),
covered AS (
    SELECT
        *,
        greatest(
            epoch_ms(gone_at)::HUGEINT - epoch_ms(greatest(joined_at, coalesce(max(gone_at) OVER earlier, joined_at))),
            0
        ) AS new_ms
    FROM placed
    WINDOW earlier AS (
        PARTITION BY cluster, host, instance_type ORDER BY joined_at, gone_at ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
kinds AS (
    SELECT
        cluster,
        kind,
        count(DISTINCT host)::INTEGER AS n_machines,
        capped(sum(new_ms) * 1000) AS machine_us,
        capped(coalesce(sum(n_threads * stayed_ms) FILTER (role = 'worker'), 0) * 1000) AS thread_us,
        coalesce(sum(memory_limit_bytes / 1073741824 * stayed_ms / 3.6e6) FILTER (role = 'worker'), 0) AS gib_hours
    FROM covered
    GROUP BY cluster, kind
),
machines AS (
    SELECT
        cluster,
        list(
            {
                'provider': kind.provider,
                'region': kind.region,
                'instance_type': kind.instance_type,
                'lifecycle': kind.lifecycle,
                'cores': kind.cores,
                'memory_bytes': kind.memory_bytes,
                'n_machines': n_machines,
                'machine_us': machine_us,
                'thread_us': thread_us,
                'gib_hours': gib_hours
            }
            ORDER BY machine_us DESC, kind
        ) AS machines
    FROM kinds
    GROUP BY cluster
),
failed AS (
    SELECT
        cluster,
        -- Dask calls a task that ran and whose result nobody wanted any more cancelled.
        least(greatest(coalesce(sum(finite(value)) FILTER (activity IN ('failed', 'cancelled')), 0) * 1e6, 0), 9e18)::BIGINT
            AS failed_us
    FROM fine_metrics
    WHERE context = 'execute' AND unit = 'seconds'
    GROUP BY cluster
)
SELECT cluster, machines.machines, failed.failed_us
FROM (SELECT DISTINCT unnest($clusters::VARCHAR[]) AS cluster)
LEFT JOIN machines USING (cluster)
LEFT JOIN failed USING (cluster)
WHERE machines.machines IS NOT NULL OR failed.failed_us IS NOT NULL
