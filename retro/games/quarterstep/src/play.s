; One step of play. model.py says the same in Python; they are compared frame by frame.

.include "game.inc"

TOP_SPEED = 8                           ; quarter pixels a step
FALL_LIMIT = 16
JUMP = 17                               ; plus half of the speed along the ground
CUT = 6                                 ; what is left of a rise once A is let go
EDGE = 31                               ; from the first to the last quarter pixel of the player's box

.segment "CODE"
play_step:
    lda door                            ; a door that was unlocked opens by itself
    beq @random
    cmp #DOOR_CLOSED
    beq @random
    dec door
    bne @random
    inc door_opened
@random:
    jsr next_random

; Along the ground
    lda pad
    and #PAD_SIDES
    cmp #PAD_RIGHT
    beq @right
    cmp #PAD_LEFT
    beq @left
    lda vx                              ; neither, or both: roll out
    beq @jump
    bmi @faster
@slower:
    dec vx
    jmp @jump
@right:
    lda vx
    cmp #TOP_SPEED
    beq @jump
@faster:
    inc vx
    jmp @jump
@left:
    lda vx
    cmp #256-TOP_SPEED
    bne @slower

; Up and down
@jump:
    bit pad
    bpl @cut
    lda grounded
    beq @fall
    lda vx
    bpl :+
    eor #$FF
    clc
    adc #1
:   lsr a
    eor #$FF                            ; -JUMP - speed / 2, as -1 - n is the complement of n
    sec
    sbc #JUMP-1
    sta vy
    jsr next_random                     ; a jump stirs
    jsr sound_jump
    jmp @fall
@cut:
    lda vy
    bpl @fall
    cmp #256-CUT
    bcs @fall
    lda #256-CUT
    sta vy
@fall:
    inc vy
    lda vy
    cmp #FALL_LIMIT+1
    bne :+
    dec vy
:

; Move along x, and stop at what is solid
    lda vx
    beq @vertical
    jsr sign
    clc
    adc x_low
    sta x_low
    txa
    adc x_high
    sta x_high
    jsr row_of_top
    sta row
    lda vx
    bmi @leftward
    jsr column_of_right
    sta column
    jsr two_rows
    bcc @vertical
    lda column                          ; the box ends where the solid column begins
    jsr times_64
    sec
    sbc #EDGE+1
    sta x_low
    txa
    sbc #0
    sta x_high
    jmp @halt
@leftward:
    jsr column_of_left
    sta column
    jsr two_rows
    bcc @vertical
    lda column
    clc
    adc #1
    jsr times_64
    sta x_low
    stx x_high
@halt:
    lda #0
    sta vx

; Move along y, and stop at what is solid
@vertical:
    lda vy
    jsr sign
    clc
    adc y_low
    sta y_low
    txa
    adc y_high
    sta y_high
    lda #0
    sta grounded
    jsr column_of_left
    sta column
    lda vy
    bmi @upward
    jsr row_of_bottom
    sta row
    jsr two_columns
    bcc @touch
    lda row
    jsr times_64
    sec
    sbc #EDGE+1
    sta y_low
    txa
    sbc #0
    sta y_high
    inc grounded
    bne @stop
@upward:
    jsr row_of_top
    sta row
    jsr two_columns
    bcc @touch
    lda row
    clc
    adc #1
    jsr times_64
    sta y_low
    stx y_high
@stop:
    lda #0
    sta vy

; What the middle of the box touches
@touch:
    lda #16
    jsr column_at
    sta column
    lda #16
    jsr row_at
    jsr tile_at
    cmp #TILE_EXIT
    beq @exit
    cmp #TILE_SPIKE
    beq @spike
    cmp #TILE_HANGING
    beq @spike
    cmp #TILE_PORTAL
    beq @portal
    cmp #TILE_SPARK
    beq @spark
    cmp #TILE_LOCK
    bne @done
    lda door
    cmp #DOOR_CLOSED
    bne @done
    lda rng                             ; the door opens after 4 * (rng - 1) + 1 steps
    asl a
    asl a
    sec
    sbc #3
    sta door
    jsr sound_lock
@done:
    rts
@exit:
    lda #MODE_CLEAR
    bne @leave
@spike:
    inc deaths
    jsr sound_death
    lda #MODE_DYING
@leave:
    sta mode
    lda #0
    sta timer
    rts
@spark:
    inc lag
    rts
@portal:
    ldy #PAGE_BEYOND
    lda (page), y
    sta x_low
    iny
    lda (page), y
    sta x_high
    iny
    lda (page), y
    sta y_low
    iny
    lda (page), y
    sta y_high
    lda #0
    sta vy
    sta grounded
    jmp sound_portal

next_random:
    ldx rng
    lda random_after, x
    sta rng
    rts

; The sign of A, as a byte in X
sign:
    ldx #0
    cmp #$80
    bcc :+
    dex
:   rts

; A * 64: low byte in A, high byte in X
times_64:
    sta scratch
    lda #0
    lsr scratch
    ror a
    lsr scratch
    ror a
    ldx scratch
    rts

; The column or row of tiles of the quarter pixel A to the right of, or below, the box's corner
column_of_left:
    lda #0
    beq column_at
column_of_right:
    lda #EDGE
column_at:
    clc
    adc x_low
    sta scratch
    lda x_high
    adc #0
    jmp over_64
row_of_top:
    lda #0
    beq row_at
row_of_bottom:
    lda #EDGE
row_at:
    clc
    adc y_low
    sta scratch
    lda y_high
    adc #0
over_64:
    asl scratch
    rol a
    asl scratch
    rol a
    rts

; Carry: whether one of the two tiles is solid that the box has in this column, or in this row
two_rows:
    lda row
    jsr solid
    bcs @answered
    jsr row_of_bottom
    jmp solid
@answered:
    rts
two_columns:
    lda row
    jsr solid
    bcs @answered
    lda #EDGE
    jsr column_at
    sta column
    lda row
    jmp solid
@answered:
    rts

; Carry: whether the tile in row A of this column is solid
solid:
    jsr tile_at
    cmp #TILE_DOOR
    beq @door
    cmp #TILE_SOLID
    rts
@door:
    lda door
    cmp #1                              ; only an open door is not
    rts

; The tile in row A of this column
tile_at:
    asl a
    asl a
    asl a
    asl a
    ora column
    tay
    lda (page), y
    rts

.segment "RODATA"
random_after:                           ; 4 bits: left by one, bit 3 exclusive-or bit 2 comes in
    .byte 0, 2, 4, 6, 9, 11, 13, 15, 1, 3, 5, 7, 8, 10, 12, 14
