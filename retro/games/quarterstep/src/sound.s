; Sounds: each is written once to the sound unit and dies away by itself.

.include "game.inc"

.segment "CODE"
.macro pulse_1 volume, sweep, period
    lda #volume
    sta $4000
    lda #sweep
    sta $4001
    lda #<(period)
    sta $4002
    lda #>(period) | $08
    sta $4003
.endmacro

sound_jump:
    pulse_1 $82, $8B, $1C0
    rts

sound_portal:
    pulse_1 $43, $94, $300
    rts

sound_lock:
    pulse_1 $C4, $00, $0A0
    rts

sound_death:
    lda #$05
    sta $400C
    lda #$0B
    sta $400E
    lda #$08
    sta $400F
    pulse_1 $86, $93, $200
    rts

; While a level is cleared: a note every four frames.
sound_clear:
    lda timer
    and #3
    bne @done
    lda timer
    lsr a
    lsr a
    tax
    lda #$83
    sta $4004
    lda #0
    sta $4005
    lda notes, x
    sta $4006
    lda #$08
    sta $4007
@done:
    rts

.segment "RODATA"
notes:                                  ; periods of C, E, G, C, E above
    .byte $D5, $A9, $8E, $6A, $54
