-- reads: catalog
-- A page of the clusters of an account, and how many there are of all that match; one row without a cluster if the page
-- is empty. Sorted by one of two keys, a text or a number, then by number; what has none comes last. Who runs was last
-- seen now, and nobody later: so a cluster that goes on reporting, or ends, stays where it was on the first page.
WITH listed AS (
    SELECT
        cluster, cluster_id, thread_us, dollars, idle_dollars, failed_dollars, currency, quality, basis,
        CASE $sort WHEN 'name' THEN lower(name) WHEN 'user' THEN lower("user") END AS text_key,
        CASE $sort
            WHEN 'id' THEN cluster_id
            WHEN 'created' THEN epoch_ms(started_at)
            WHEN 'last_seen'
                THEN CASE WHEN status = 'running' THEN $now_s * 1000 ELSE least(epoch_ms(seen_at), $now_s * 1000) END
            WHEN 'duration' THEN CASE WHEN status = 'running' THEN up_s + greatest($now_s - heard_s, 0) ELSE up_s END
            WHEN 'peak_workers' THEN peak_workers
            WHEN 'peak_memory' THEN peak_memory_bytes
            WHEN 'n_tasks' THEN n_tasks
            WHEN 'n_tasks_erred' THEN n_tasks_erred
            WHEN 'thread_seconds' THEN thread_us
            WHEN 'cost' THEN dollars
            WHEN 'idle' THEN idle_dollars
        END::DOUBLE AS number_key
    FROM (
        SELECT
            *,
            CASE
                WHEN phase = 'closed' THEN 'stopped'
                WHEN $now_s - heard_s > $missed * next_s THEN 'lost'
                ELSE 'running'
            END AS status
        FROM (SELECT *, epoch_ms(last_received_at) / 1000 AS heard_s FROM catalog)
    )
    WHERE ($since_s IS NULL OR heard_s >= $since_s)
        AND ($until_s IS NULL OR epoch_ms(first_received_at) / 1000 <= $until_s)
        AND ($user IS NULL OR "user" = $user)
        AND ($status IS NULL OR status = $status)
        AND ($kind IS NULL OR kind = $kind)
        AND ($name IS NULL OR name = $name)
        -- A key may hold a `=` itself, so an entry counts as a whole.
        AND (
            $tag IS NULL
            OR map_contains(tags, $tag)
            OR (
                contains($tag, '=')
                AND len(list_filter(map_entries(tags), lambda e: e.key || '=' || e.value = $tag)) > 0
            )
        )
        AND (
            $part IS NULL
            OR cluster_id::VARCHAR = $part
            OR contains(lower(name), lower($part))
            OR contains(lower("user"), lower($part))
            OR contains(lower(host), lower($part))
            OR contains(lower(kind), lower($part))
            OR len(list_filter(map_entries(tags), lambda e: contains(lower(e.key || '=' || e.value), lower($part)))) > 0
        )
),
following AS (
    SELECT
        *,
        CASE WHEN NOT $descending THEN text_key END AS rising,
        CASE WHEN $descending THEN text_key END AS falling,
        CASE WHEN $descending THEN -number_key ELSE number_key END AS along,
        CASE WHEN $descending THEN -cluster_id ELSE cluster_id END AS place
    FROM listed
    WHERE $after_id IS NULL
        -- Behind the last one of the page before.
        OR CASE
            WHEN $after_text IS NULL AND $after_number IS NULL
                THEN text_key IS NULL AND number_key IS NULL
                    AND CASE WHEN $descending THEN cluster_id < $after_id ELSE cluster_id > $after_id END
            WHEN text_key IS NULL AND number_key IS NULL THEN true
            WHEN $descending
                THEN coalesce(text_key < $after_text, number_key < $after_number)
                    OR (coalesce(text_key = $after_text, number_key = $after_number) AND cluster_id < $after_id)
            ELSE coalesce(text_key > $after_text, number_key > $after_number)
                OR (coalesce(text_key = $after_text, number_key = $after_number) AND cluster_id > $after_id)
        END
),
page AS (
    FROM following
    ORDER BY rising NULLS LAST, falling DESC NULLS LAST, along NULLS LAST, place
    LIMIT $limit
)
SELECT
    counted.total,
    (SELECT max(last_received_at) FROM catalog) AS as_of,
    page.* EXCLUDE (rising, falling, along, place)
FROM (SELECT count(*) AS total FROM listed) counted
LEFT JOIN page ON true
ORDER BY page.rising NULLS LAST, page.falling DESC NULLS LAST, page.along NULLS LAST, page.place
